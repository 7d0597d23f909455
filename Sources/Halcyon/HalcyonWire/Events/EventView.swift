import Digests
import HalcyonModel
import JSON

/// What who follows events reads of one: the members that matter to whoever waits for a job, also of versions to come.
public struct EventView: Sendable {
    /// An output that is ready.
    public struct Output: Sendable {
        /// Where the result is kept.
        public let key: String
        /// Pixels across.
        public let width: Int
        /// Pixels down.
        public let height: Int
        /// The file's; nil for one that this version does not know.
        public let format: ImageFormat?
        /// Length of the file.
        public let bytes: Int
        /// Of an animation.
        public let frames: Int?
        /// When the job asked for it.
        public let blurhash: String?
        /// Likewise.
        public let dominantColor: String?
        /// The file, when the event carries it.
        public let data: [UInt8]?
    }

    /// A variant of a ready job that could not be made.
    public struct VariantFailure: Sendable {
        /// Where in the job it stands, from 0.
        public let variant: Int
        /// A code of the closed list.
        public let code: String
        /// Words.
        public let message: String
    }

    /// How a job ended. There is at least one output.
    public enum Ending: Sendable {
        /// The outputs, in the order of the variants, and the variants that could not be made.
        case ready([Output], failures: [VariantFailure])
        /// A code of the closed list, and words.
        case failed(code: String, message: String)
        /// Nobody wanted it any more.
        case cancelled
        /// By a job of this generation.
        case superseded(by: Int)
    }

    /// Behind the prefix `halcyon.image.`.
    public let type: String
    /// The source as the job gave it.
    public let subject: String?
    /// nil for an event that is about no job.
    public let jobID: String?
    /// nil while the job goes on.
    public let ending: Ending?
    /// What was purged, where it is about that.
    public let purged: Purged.Target?
    /// Milliseconds from the worker's taking the job to its end.
    public let total: Double?

    /// nil for what is no event of Halcyon.
    public init?(json: [UInt8]) {
        // Deeper than a job may be, for what a job wants given back stands inside.
        // A record that is not JSON is not an event.
        guard let root = try? JSON.parse(json, maximumSize: 64 << 20, maximumDepth: 64),
            let type = root.text("type"), type.hasPrefix(Event.typePrefix), let data = root.member("data")
        else { return nil }
        self.type = String(type.dropFirst(Event.typePrefix.count))
        subject = root.text("subject")
        jobID = data.member("job")?.text("id")
        total = data.member("timings")?.member("total")?.asDouble
        let kind = Event.Kind(rawValue: self.type)
        purged = kind == .purged ? Purged.Target(data) : nil
        switch kind {
        case .ready: ending = Output.all(in: data).map { .ready($0, failures: VariantFailure.all(in: data)) }
        case .failed: ending = .failed(code: data.text("code") ?? "internal", message: data.text("message") ?? "")
        case .cancelled: ending = .cancelled
        case .superseded: ending = .superseded(by: data.whole("supersededBy"))
        case .started, .progress, .purged, nil: ending = nil
        }
    }
}

extension EventView.Output {
    /// The variants of a ready event; nil where there is none.
    fileprivate static func all(in data: JSONElement) -> [EventView.Output]? {
        var outputs: [EventView.Output] = []
        // An event of a later release may have something else there: then there are none.
        try? data.member("variants")?.forEachElement { variant in
            if let output = EventView.Output(variant) { outputs.append(output) }
        }
        return outputs.isEmpty ? nil : outputs
    }

    private init?(_ variant: JSONElement) {
        guard let key = variant.text("key") else { return nil }
        self.key = key
        width = variant.whole("width")
        height = variant.whole("height")
        format = variant.text("format").flatMap(ImageFormat.init(rawValue:))
        bytes = variant.whole("bytes")
        frames = variant.member("frames") == nil ? nil : variant.whole("frames")
        blurhash = variant.text("blurhash")
        dominantColor = variant.text("dominantColor")
        data = variant.text("data").flatMap(Base64.decode)
    }
}

extension EventView.VariantFailure {
    fileprivate static func all(in data: JSONElement) -> [EventView.VariantFailure] {
        var failures: [EventView.VariantFailure] = []
        // Likewise.
        try? data.member("failures")?.forEachElement { failure in
            failures.append(
                EventView.VariantFailure(
                    variant: failure.whole("variant"), code: failure.text("code") ?? "internal",
                    message: failure.text("message") ?? ""))
        }
        return failures
    }
}

extension Purged.Target {
    /// By the member that the event has of the three; nil for what a later version may purge by.
    fileprivate init?(_ data: JSONElement) {
        if let source = data.text("source") {
            self = .source(source)
        } else if let tag = data.text("tag") {
            self = .tag(tag)
        } else if let key = data.text("key") {
            self = .key(key)
        } else {
            return nil
        }
    }
}

extension JSONElement {
    fileprivate func text(_ name: String) -> String? { member(name)?.asString }
    fileprivate func whole(_ name: String) -> Int { Int(max(0, member(name)?.asInteger ?? 0)) }
}
