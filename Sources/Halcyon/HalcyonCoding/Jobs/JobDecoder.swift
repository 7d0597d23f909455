import Glibc
import HalcyonModel
import JSON

/// A decoded job and the warnings found while decoding it.
public struct DecodedJob: Sendable {
    /// The job.
    public let job: Job
    /// The fields that are unknown to this version. Fields of variants have a path: `variants[1].widht`.
    public let unknownFields: [String]
    /// The lane requested by the field `priority`. It applies to submissions by HTTP or the command line. For messages
    /// on Kafka the topic determines the lane.
    public let lane: Lane?

    /// The unknown fields as human-readable warnings: the first ten, and the number of further ones.
    public var warnings: [String] { Self.warnings(of: unknownFields) }

    static func warnings(of unknownFields: [String]) -> [String] {
        let named = unknownFields.prefix(mostNamed).map { "unknown field \"\($0.prefix(longestNamed))\"" }
        let more = unknownFields.count - named.count
        return more == 0 ? named : named + ["\(more) more unknown fields"]
    }

    private static let mostNamed = 10
    /// The maximum length of a name in a warning, in characters.
    private static let longestNamed = 100
}

/// Decodes job messages in the format of `schemas/job.schema.json`.
public struct JobDecoder: Sendable {
    /// The maximum size of a message, in bytes.
    public var maximumBytes: Int
    /// True if unknown fields are errors.
    public var isStrict: Bool
    /// The names of the host program's processors. Built-in processors take precedence.
    public var customProcessors: Set<String>
    /// The names of the host program's sizers. Built-in sizers take precedence.
    public var customSizers: Set<String>
    /// The names of the host program's source providers. Built-in kinds take precedence.
    public var customSources: Set<String> = []
    /// A function that returns the key of a custom source, or throws if the provider does not accept the reference.
    public var customSourceKey: @Sendable (_ name: String, _ reference: String) throws(JobError) -> String = { $1 }
    /// The rules by which URLs identify images. They are the same in all programs of a cluster.
    public var identityRules: [SourceIdentityRule] = []
    /// The name and version of the detector, for keys. They are the same in all programs of a cluster.
    public var detector = Variant.standardDetector
    /// The maximum number of seconds from now until a job may start at the earliest.
    public var maximumDelay = Self.defaultMaximumDelay
    /// The default of ``maximumDelay``: 30 days.
    public static let defaultMaximumDelay = 30 * 86_400.0
    /// The fallback picture of jobs that have no field `fallback` and are not delivered by `put`; nil for none.
    public var fallback: Source?
    /// A function that validates the parameters of custom processors and sizers in each variant.
    public var checkCustom: @Sendable (Variant) throws(JobError) -> Void = { _ in }

    /// A function that checks that a webhook is permitted. The default permits all, for programs that only forward
    /// jobs.
    public var checkWebhook: @Sendable (Webhook) throws(JobError) -> Void = { _ in }
    /// A function that returns the preset with a name; nil if there is none.
    public var findPreset: @Sendable (_ name: String) -> Preset? = { _ in nil }
    /// True if jobs without a preset are rejected.
    public var requiresPreset = false

    /// Creates a decoder. The defaults match Kafka's limit of 1 MiB per message and a program without extensions.
    public init(
        maximumBytes: Int = 1 << 20, isStrict: Bool = false, customProcessors: Set<String> = [],
        customSizers: Set<String> = []
    ) {
        self.maximumBytes = maximumBytes
        self.isStrict = isStrict
        self.customProcessors = customProcessors
        self.customSizers = customSizers
    }

    /// Decodes and validates a job message.
    /// - Parameter defaultID: The id of a job that has none: its topic, partition and offset.
    /// - Throws: ``InvalidJobError`` if the message is not a valid job.
    public func read(_ bytes: [UInt8], defaultID: String) throws(InvalidJobError) -> DecodedJob {
        let root: JSONElement
        let reading: DecodedJob
        do {
            root = try JSON.parse(bytes, maximumSize: maximumBytes)
        } catch {
            throw InvalidJobError(JobError(error), read: self)
        }
        var missing: MissingPreset?
        do throws(JSONError) {
            var fields = JobFields(reader: self)
            try root.forEachMember { name, value throws(JSONError) in try fields.read(name, value) }
            if let reference = fields.preset {
                let preset = findPreset(reference.name)
                guard let preset, preset.version >= reference.version ?? 0 else {
                    let absent = MissingPreset(reference: reference, known: preset?.version)
                    missing = absent
                    throw absent.error
                }
                fields = try expand(fields, preset, root)
            } else if requiresPreset {
                throw JSONError(.missing, "is missing: only jobs with a preset are accepted", path: "preset")
            }
            let job = try fields.job(defaultID: defaultID)
            if isStrict, let name = fields.unknown.first {
                throw JSONError(.unknown, "unknown field", path: name)
            }
            reading = DecodedJob(job: job, unknownFields: fields.unknown, lane: fields.lane)
        } catch {
            throw InvalidJobError(JobError(error), of: root, read: self, missing)
        }
        try check(reading.job.variants, of: root)
        do throws(JobError) {
            if let webhook = reading.job.webhook { try checkWebhook(webhook) }
        } catch {
            throw InvalidJobError(error.within("webhook"), of: root, read: self)
        }
        return reading
    }

    /// Returns the tenant of a job message, or of its preset, without decoding the job; nil if it has none or the
    /// message is invalid.
    public func tenant(of bytes: [UInt8]) -> String? {
        // Most messages without a tenant are not parsed. A name that is spelled otherwise contains an escape.
        guard bytes.contains(text: "tenant\"") || bytes.contains(text: "preset\"") || bytes.contains(text: "\\u"),
            bytes.count <= maximumBytes,
            // Invalid messages and fields fail when the job is decoded.
            let root = try? JSON.parse(bytes, maximumSize: maximumBytes)
        else { return nil }
        let value = root.member("tenant")?.given ?? preset(of: root)?.tenant
        // As above.
        return value.flatMap { try? JobFields.tenant($0) }
    }

    /// Returns the preset that a message names, whatever its version; nil if it names none, or none that is known.
    func preset(of root: JSONElement) -> Preset? {
        // An invalid reference fails when the job is decoded.
        root.member("preset")?.given.flatMap { try? PresetReference($0).name }.flatMap(findPreset)
    }

    /// Returns the error for a message that is rejected for a reason outside its value.
    public func refuse(_ bytes: [UInt8], for failure: JobError) -> InvalidJobError {
        // Malformed JSON has no fields to report.
        InvalidJobError(failure, of: try? JSON.parse(bytes, maximumSize: maximumBytes), read: self)
    }

    private func check(_ variants: [Variant], of root: JSONElement) throws(InvalidJobError) {
        for (index, variant) in variants.enumerated() {
            do throws(JobError) {
                try checkCustom(variant)
            } catch var failure {
                failure.variant = index
                throw InvalidJobError(
                    failure.qualified(Array(variants.indices), of: variants.count), of: root, read: self)
            }
        }
    }
}

extension [UInt8] {
    /// Returns true if the bytes contain this text, which is not empty.
    fileprivate func contains(text: StaticString) -> Bool {
        withUnsafeBytes { bytes in
            guard var start = bytes.baseAddress else { return false }
            let end = start + bytes.count
            let length = text.utf8CodeUnitCount
            while end - start >= length,
                let found = memchr(start, Int32(text.utf8Start.pointee), end - start - length + 1)
            {
                if memcmp(found, text.utf8Start, length) == 0 { return true }
                start = UnsafeRawPointer(found) + 1
            }
            return false
        }
    }
}

/// The error for an invalid job message, with the valid fields that its event contains. Each field is decoded
/// independently.
public struct InvalidJobError: Error, Sendable {
    /// The failure, with the name of the invalid field.
    public let failure: JobError
    /// The job's id; nil if it is missing or invalid.
    public let id: String?
    /// The source; nil if it cannot be the subject of an event.
    public let source: String?
    /// The webhook of the job, or of its preset; nil if it is missing, invalid or not permitted.
    public let webhook: Webhook?
    /// The batch that the job belongs to; nil if it is missing or invalid.
    public let batch: BatchMembership?
    /// The values that the job passes through.
    public let echo: Job.PassthroughMetadata
    /// The preset that the job names, if the job was rejected because the decoder does not have it; nil otherwise.
    public let missingPreset: MissingPreset?

    /// Creates the error for a rejected message.
    /// - Parameters:
    ///   - failure: The reason.
    ///   - root: The message; nil if it is not JSON.
    ///   - reader: The decoder that rejected the message.
    ///   - missingPreset: The preset that the decoder does not have, if that is the reason.
    init(
        _ failure: JobError, of root: JSONElement? = nil, read reader: JobDecoder, _ missingPreset: MissingPreset? = nil
    ) {
        func field<Value>(_ name: String, _ read: (JSONElement) throws(JSONError) -> Value) -> Value? {
            // Other invalid fields are omitted.
            root?.member(name)?.given.flatMap { try? read($0) }
        }
        self.failure = failure
        self.missingPreset = missingPreset
        id = field("id", JobFields.id)
        source = field("source") { source throws(JSONError) in try Self.subject(source, reader) }
        batch = field("batch") { value throws(JSONError) in try BatchMembership(value) }
        let target: JSONElement? = root?.member("webhook")?.given ?? root.flatMap { reader.preset(of: $0)?.webhook }
        // Webhooks that are invalid or not permitted are omitted.
        let webhook: Webhook? = target.flatMap { try? $0.webhook() }
        self.webhook = webhook.flatMap { (try? reader.checkWebhook($0)) == nil ? nil : $0 }
        echo = Job.PassthroughMetadata(
            metadata: field("metadata", JobFields.echoed), placeholder: field("placeholder", JobFields.echoed),
            altText: field("altText", JobFields.echoed))
    }

    /// Returns the text of a source, which may be of an unsupported kind.
    private static func subject(_ source: JSONElement, _ reader: JobDecoder) throws(JSONError) -> String {
        // The text of an unsupported source is used without its credentials.
        if let source = try? reader.source(source) { return source.shownText }
        let text = try source.string()
        guard (1...WebURL.longest).contains(text.utf8.count) else { throw JSONError(.invalid, "cannot be a subject") }
        return text.withoutCredentials
    }
}

extension JobError {
    /// Creates the failure of a message that cannot be decoded.
    init(_ error: JSONError) {
        let code: JobErrorCode =
            switch error.code {
            case .noMemory: .internal
            case .unsupported: .unsupportedSource
            default: .invalidJob
            }
        self.init(code, error.path.isEmpty ? "the message: \(error)" : "\(error)", cause: error)
    }
}
