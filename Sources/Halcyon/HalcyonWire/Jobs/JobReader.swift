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
