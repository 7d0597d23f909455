import HalcyonModel
import Hashing
import JSON

/// The members of an event that are relevant to clients waiting for a job. Events of future versions can be decoded
/// too.
public struct DecodedEvent: Sendable {
    /// An output of a ready job.
    public struct Output: Sendable {
        /// The key in the result tier.
        public let key: String
        /// The name of the variant; nil if it has none.
        public let name: String?
        /// The width in pixels.
        public let width: Int
        /// The height in pixels.
        public let height: Int
        /// The file format; nil if it is unknown to this version.
        public let format: ImageFormat?
        /// The size of the file in bytes.
        public let bytes: Int
        /// The number of frames of an animation; nil for a still image.
        public let frames: Int?
        /// The BlurHash, if the job requested it.
        public let blurhash: String?
        /// The dominant color, if the job requested it.
        public let dominantColor: String?
        /// The part of the source that remained when margins were removed, if the job requested it.
        public let trim: PixelRect?
        /// The most important colors, if the job requested them.
        public let palette: [String]?
        /// The ThumbHash as base64, if the job requested it.
        public let thumbhash: String?
        /// The perceptual hash, if the job requested it.
        public let phash: String?
        /// The faces, the most confident first, if the job requested them.
        public let faces: [DetectedFace]?
        /// The facts about the source as a JSON object, if the job requested them.
        public let info: [UInt8]?
        /// The outcome of the search for the size or the quality, if the job requested one.
        public let encoding: EncodingChoice?
        /// The address to which the file was uploaded, without secrets; nil if it was not uploaded.
        public let uploadedTo: String?
        /// The file, if the event contains it.
        public let data: [UInt8]?
    }

    /// The failure of a variant of a ready job.
    public struct VariantFailure: Sendable {
        /// The index of the variant in the job, from 0.
        public let variant: Int
        /// The error code; see `JobErrorCode`.
        public let code: String
        /// The error message.
        public let message: String
    }

    /// The outcome of a job.
    public enum Ending: Sendable {
        /// The outputs in the order of the variants, at least one, and the failed variants.
        case ready([Output], failures: [VariantFailure])
        /// The error code (see `JobErrorCode`) and the error message.
        case failed(code: String, message: String)
        /// The job was cancelled.
        case cancelled
        /// The job was superseded by a job of this generation.
        case superseded(by: Int)
    }

    /// The unique id of the event.
    public let id: String
    /// The CloudEvents type without the prefix `halcyon.image.`.
    public let type: String
    /// The source as given in the job.
    public let subject: String?
    /// The job's id; nil for an event without a job.
    public let jobID: String?
    /// The batch that the job belongs to; nil for none.
    public let batch: BatchMembership?
    /// The outcome of the job; nil if the event is not terminal.
    public let ending: Ending?
    /// The error code of a ready job whose outputs show its fallback picture; nil for others.
    public let fallback: String?
    /// The purged target; nil for other events.
    public let purged: Purged.Target?
    /// The tags by which shared caches find responses with purged results; empty for other events.
    public let cacheTags: [String]
    /// The milliseconds from the worker's receipt of the job to its end.
    public let total: Double?

    /// Returns false for most events that are no purge, without parsing them. Events write their type near the beginning.
    public static func mayBePurge(_ json: [UInt8]) -> Bool {
        json.withUnsafeBufferPointer { bytes in
            let last = min(bytes.count, 256) - purgeType.count
            return last >= 0
                && (0...last).contains { start in purgeType.indices.allSatisfy { bytes[start + $0] == purgeType[$0] } }
        }
    }

    private static let purgeType = Array("\"\(Event.typePrefix)\(Event.Kind.purged.rawValue)\"".utf8)

    /// Decodes an event; returns nil if the JSON is not an event of Halcyon.
    public init?(json: [UInt8]) {
        // The maximum depth exceeds that of jobs, because events contain the job's metadata.
        // A record that is not JSON is not an event.
        guard let root = try? JSON.parse(json, maximumSize: 64 << 20, maximumDepth: 64),
            let type = root.text("type"), type.hasPrefix(Event.typePrefix), let data = root.member("data")
        else { return nil }
        self.type = String(type.dropFirst(Event.typePrefix.count))
        id = root.text("id") ?? ""
        subject = root.text("subject")
        let job = data.member("job")
        jobID = job?.text("id")
        // Events of later releases may have something else here.
        batch = job?.member("batch").flatMap { try? BatchMembership($0) }
        total = data.member("timings")?.member("total")?.asDouble
        let kind = Event.Kind(rawValue: self.type)
        fallback = data.member("fallback")?.text("code")
        purged = kind == .purged ? Purged.Target(data) : nil
        var cacheTags: [String] = []
        // Events of later releases may have another type here; they have no tags then.
        if kind == .purged {
            try? data.member("cacheTags")?.forEachElement { tag in
                if let tag = tag.asString { cacheTags.append(tag) }
            }
        }
        self.cacheTags = cacheTags
        switch kind {
        case .ready: ending = Output.all(in: data).map { .ready($0, failures: VariantFailure.all(in: data)) }
        case .failed: ending = .failed(code: data.text("code") ?? "internal", message: data.text("message") ?? "")
        case .cancelled: ending = .cancelled
        case .superseded: ending = .superseded(by: data.whole("supersededBy"))
        case .started, .progress, .purged, nil: ending = nil
        }
    }
}

/// The attributes by which readers select events: those of jobs, purges and batches. Events of future versions have
/// them too.
public struct EventAttributes: Sendable {
    /// The CloudEvents type.
    public let type: String
    /// The source as given in the job, or the id of the batch.
    public let subject: String?
    /// The job's id; nil for an event without a job.
    public let jobID: String?
    /// The id of the batch that the event or its job belongs to; nil for none.
    public let batch: String?

    /// Decodes the attributes; returns nil if the JSON is not an event of Halcyon.
    public init?(json: [UInt8]) {
        // A record that is not JSON is not an event.
        guard let root = try? JSON.parse(json, maximumSize: 64 << 20, maximumDepth: 64),
            let type = root.text("type"), let data = root.member("data")
        else { return nil }
        self.type = type
        subject = root.text("subject")
        if type.hasPrefix(BatchEvent.typePrefix) {
            jobID = nil
            batch = data.member("batch")?.text("id")
        } else if type.hasPrefix(Event.typePrefix) {
            let job = data.member("job")
            jobID = job?.text("id")
            batch = job?.member("batch")?.text("id")
        } else {
            return nil
        }
    }

    /// The short names of all types: `ready`, or `batch.completed`.
    public static let typeNames =
        Event.Kind.allCases.map(\.rawValue) + BatchEvent.Kind.allCases.map { "batch.\($0.rawValue)" }

    /// Returns the CloudEvents type with a name: `ready`, `batch.completed` or the type itself; nil if there is none.
    public static func type(named name: String) -> String? {
        typeNames.lazy.map { short in short.contains(".") ? "halcyon.\(short)" : Event.typePrefix + short }
            .first { $0 == name || $0 == Event.typePrefix + name || $0 == "halcyon.\(name)" }
    }
}

extension DecodedEvent.Output {
    /// Returns the outputs of a ready event, none for a prefetch; nil if they cannot be decoded.
    fileprivate static func all(in data: JSONElement) -> [DecodedEvent.Output]? {
        var (outputs, count): ([DecodedEvent.Output], Int) = ([], 0)
        guard let variants = data.member("variants") else { return nil }
        // Events of later releases may have another type here; they have no outputs then.
        guard
            (try? variants.forEachElement { variant in
                count += 1
                if let output = DecodedEvent.Output(variant) { outputs.append(output) }
            }) != nil
        else { return nil }
        return outputs.isEmpty && count > 0 ? nil : outputs
    }

    private init?(_ variant: JSONElement) {
        guard let key = variant.text("key") else { return nil }
        self.key = key
        name = variant.text("name")
        width = variant.whole("width")
        height = variant.whole("height")
        format = variant.text("format").flatMap(ImageFormat.init(rawValue:))
        bytes = variant.whole("bytes")
        frames = variant.member("frames") == nil ? nil : variant.whole("frames")
        blurhash = variant.text("blurhash")
        dominantColor = variant.text("dominantColor")
        // A malformed rectangle of another version counts as none.
        trim = variant.member("trim").flatMap { try? PixelRect($0) }
        palette = variant.member("palette").flatMap { list in
            var colors: [String] = []
            // Events of later releases may have another type here; they have no palette then.
            let isList = (try? list.forEachElement { colors.append($0.asString ?? "") }) != nil
            return isList ? colors : nil
        }
        thumbhash = variant.text("thumbhash")
        phash = variant.text("phash")
        // Events of later releases may have another type here.
        faces = variant.member("faces").flatMap { try? DetectedFace.list($0) }
        info = variant.member("info")?.bytes
        // Events of later releases may have another type here.
        encoding = variant.member("encoding").flatMap { try? EncodingChoice($0) }
        uploadedTo = variant.text("put")
        data = variant.text("data").flatMap(Base64.decode)
    }
}

extension DecodedEvent.VariantFailure {
    fileprivate static func all(in data: JSONElement) -> [DecodedEvent.VariantFailure] {
        var failures: [DecodedEvent.VariantFailure] = []
        // Another type is ignored here too.
        try? data.member("failures")?.forEachElement { failure in
            failures.append(
                DecodedEvent.VariantFailure(
                    variant: failure.whole("variant"), code: failure.text("code") ?? "internal",
                    message: failure.text("message") ?? ""))
        }
        return failures
    }
}

extension Purged.Target {
    /// Decodes the target from the member `source`, `tag` or `key`, or `tenant` if there is none of them; nil without
    /// any, as in events of later versions.
    fileprivate init?(_ data: JSONElement) {
        if let source = data.text("source") {
            self = .source(source)
        } else if let tag = data.text("tag") {
            self = .tag(tag)
        } else if let key = data.text("key") {
            self = .key(key)
        } else if let tenant = data.text("tenant") {
            self = .tenant(tenant)
        } else {
            return nil
        }
    }
}

extension JSONElement {
    fileprivate func text(_ name: String) -> String? { member(name)?.asString }
    fileprivate func whole(_ name: String) -> Int { Int(max(0, member(name)?.asInteger ?? 0)) }
}
