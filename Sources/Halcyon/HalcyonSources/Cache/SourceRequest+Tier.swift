import Digests
import HalcyonModel
import Threads

extension Source {
    /// Whether the tier has anything to save: what is drawn, came with the job, or lies on the disk is as near as it can be.
    var isWorthKeeping: Bool {
        switch self {
        case .web, .s3, .video, .custom: true
        case .initials, .file, .data: false
        }
    }
}

extension SourceRequest {
    /// The key of its entry, in the slot of all keys of the source: those of the results that are made from it.
    var tierKey: String {
        "halcyon:{\(ResultKey.sourceHash(of: self) { SHA256.hash($0).description })}:source"
    }
}

extension CachedSource {
    /// What an entry holds, with the time at which its origin gave or confirmed it.
    init(_ entry: SourceEntry, completedAt: Double, _ fence: Int?, _ permit: Place?) {
        self.init(
            source: LoadedSource(
                body: entry.body, headers: entry.response.headers, status: entry.response.status,
                completedAt: completedAt),
            isFromCache: true, fence: fence, permit: permit)
    }
}
