import Digests
import HalcyonModel

extension Source {
    /// Whether the tier has anything to save: what is drawn, came with the job, or lies on the disk is as near as it can be.
    var isWorthKeeping: Bool {
        switch self {
        case .web, .s3, .video, .custom: true
        case .initials, .file, .data: false
        }
    }

    /// The key of its entry, in the slot of all keys of the source.
    var tierKey: String { "halcyon:{\(SHA256.hash(Array(canonicalText(of: nil).utf8)).description.prefix(32))}:source" }
}

extension TieredSource {
    /// What an entry holds, with the time at which its origin gave or confirmed it.
    init(_ entry: SourceEntry, completedAt: Double) {
        self.init(
            source: LoadedSource(
                body: entry.body, headers: entry.response.headers, status: entry.response.status,
                completedAt: completedAt),
            isFromTier: true)
    }
}
