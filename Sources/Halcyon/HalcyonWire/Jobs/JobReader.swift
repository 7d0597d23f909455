import HalcyonModel
import JSON

/// A job that was read, and what was noticed on the way.
public struct JobReading: Sendable {
    /// The job.
    public let job: Job
    /// Fields that mean nothing to this version, those of variants with their place: `variants[1].widht`.
    public let unknownFields: [String]
    /// The lane that the field `priority` asks for. It is for who submits by HTTP or command line: of what lies on Kafka the topic is
    /// the lane.
    public let lane: Lane?

    /// The unknown fields as texts for people, of a length that an event can bear: ten of them, and how many more there are.
    public var warnings: [String] { Self.warnings(of: unknownFields) }

    static func warnings(of unknownFields: [String]) -> [String] {
        let named = unknownFields.prefix(mostNamed).map { "unknown field \"\($0.prefix(longestNamed))\"" }
        let more = unknownFields.count - named.count
        return more == 0 ? named : named + ["\(more) more unknown fields"]
    }

    private static let mostNamed = 10
    /// In characters.
    private static let longestNamed = 100
}

/// Reads the value of a job message: the JSON that `schemas/job.schema.json` describes.
public struct JobReader: Sendable {
    /// Bytes of the longest message taken.
    public var maximumBytes: Int
    /// Whether a field that means nothing here is an error.
    public var isStrict: Bool
    /// The names of the processors that the host program registered. Halcyon's own go before them.
    public var customProcessors: Set<String>
    /// The names of the sizers that the host program registered. Halcyon's own go before them.
    public var customSizers: Set<String>
    /// The names of the host program's providers of sources. Halcyon's own kinds go before them.
    public var customSources: Set<String> = []
    /// Makes the key of a source that one of these loads; it refuses what the provider cannot load.
    public var customSourceKey: @Sendable (_ name: String, _ reference: String) throws(Failure) -> String = { $1 }
    /// Asked of each output whether what was registered can follow the parameters that it is given.
    public var checkCustom: @Sendable (Variant) throws(Failure) -> Void = { _ in }

    /// Asked whether a job's end may be told there; who only sends jobs on does not ask.
    public var checkWebhook: @Sendable (Webhook) throws(Failure) -> Void = { _ in }

    /// The defaults suit Kafka's own limit of 1 MiB a message, and a program without processors or sizers of its own.
    public init(
        maximumBytes: Int = 1 << 20, isStrict: Bool = false, customProcessors: Set<String> = [],
        customSizers: Set<String> = []
    ) {
        self.maximumBytes = maximumBytes
        self.isStrict = isStrict
        self.customProcessors = customProcessors
        self.customSizers = customSizers
    }

    /// - Parameter defaultID: the id of a job that brings none: its topic, partition and offset.
    /// - Throws: ``JobRefusal``.
    public func read(_ bytes: [UInt8], defaultID: String) throws(JobRefusal) -> JobReading {
        let root: JSONElement
        let reading: JobReading
        do {
            root = try JSON.parse(bytes, maximumSize: maximumBytes)
        } catch {
            throw JobRefusal(Failure(error), read: self)
        }
        do throws(JSONError) {
            var fields = JobFields(reader: self)
            try root.forEachMember { name, value throws(JSONError) in try fields.take(name, value) }
            let job = try fields.job(defaultID: defaultID)
            if isStrict, let name = fields.unknown.first {
                throw JSONError(.unknown, "is no field of a job", path: name)
            }
            reading = JobReading(job: job, unknownFields: fields.unknown, lane: fields.lane)
        } catch {
            throw JobRefusal(Failure(error), of: root, read: self)
        }
        try check(reading.job.variants, of: root)
        do throws(Failure) {
            if let webhook = reading.job.webhook { try checkWebhook(webhook) }
        } catch {
            throw JobRefusal(error.within("webhook"), of: root, read: self)
        }
        return reading
    }

    /// The refusal of a message for a reason that does not stand in its value.
    public func refuse(_ bytes: [UInt8], for failure: Failure) -> JobRefusal {
        // What is no JSON has no fields that the refusal could name.
        JobRefusal(failure, of: try? JSON.parse(bytes, maximumSize: maximumBytes), read: self)
    }

    private func check(_ variants: [Variant], of root: JSONElement) throws(JobRefusal) {
        for (index, variant) in variants.enumerated() {
            do throws(Failure) {
                try checkCustom(variant)
            } catch var failure {
                failure.variant = index
                throw JobRefusal(failure.naming(Array(variants.indices), of: variants.count), of: root, read: self)
            }
        }
    }
}

/// A message that is no job that can be done, and what an event can still say of it: each field for itself, wherever it stands
/// in the message.
public struct JobRefusal: Error, Sendable {
    /// `invalid_job` or `unsupported_source`, with the field's name.
    public let failure: Failure
    /// The job's id, when the message has a good one: then an event can say what is wrong.
    public let id: String?
    /// The source, when it is a text that can be an event's subject.
    public let source: String?
    /// Where the job wanted its end told, if that may be.
    public let webhook: Webhook?
    /// What the job wanted given back.
    public let echo: Job.Echo

    /// - Parameters:
    ///   - root: the message, if it is JSON at all.
    ///   - reader: who refused it.
    init(_ failure: Failure, of root: JSONElement? = nil, read reader: JobReader) {
        func field<Value>(_ name: String, _ read: (JSONElement) throws(JSONError) -> Value) -> Value? {
            // A field that is wrong too is left out.
            root?.member(name)?.given.flatMap { try? read($0) }
        }
        self.failure = failure
        id = field("id", JobFields.id)
        source = field("source") { source throws(JSONError) in try Self.subject(source, reader) }
        let webhook: Webhook? = field("webhook") { value throws(JSONError) in try value.webhook() }
        // A webhook that may not be told is not.
        self.webhook = webhook.flatMap { (try? reader.checkWebhook($0)) == nil ? nil : $0 }
        echo = Job.Echo(
            metadata: field("metadata", JobFields.echoed), placeholder: field("placeholder", JobFields.echoed),
            altText: field("altText", JobFields.echoed))
    }

    /// A source's text, be it one that is not served.
    private static func subject(_ source: JSONElement, _ reader: JobReader) throws(JSONError) -> String {
        // One that is not served is shown as it stands.
        if let source = try? reader.source(source) { return source.shownText }
        let text = try source.string()
        guard (1...WebURL.longest).contains(text.utf8.count) else { throw JSONError(.invalid, "is no subject") }
        return text.withoutCredentials
    }
}

extension Failure {
    /// The failure of a message that cannot be read.
    init(_ error: JSONError) {
        let code: FailureCode =
            switch error.code {
            case .noMemory: .internal
            case .unsupported: .unsupportedSource
            default: .invalidJob
            }
        self.init(code, error.path.isEmpty ? "the message: \(error)" : "\(error)", cause: error)
    }
}
