import HalcyonModel
import Hashing
import JSON

/// A builder for job messages that stores each field as JSON. Fields are not validated; see ``JobDecoder``.
public struct JobBuilder: Sendable {
    private var fields: [(name: String, json: [UInt8])] = []

    /// Creates a builder without fields.
    public init() {}

    /// Creates a builder with the members of a JSON object.
    /// - Throws: ``JSONError`` if the text is not a JSON object.
    public init(json bytes: [UInt8], maximumSize: Int) throws(JSONError) {
        try JSON.parse(bytes, maximumSize: maximumSize).forEachMember { name, value throws(JSONError) in
            fields.append(("\(name)", value.bytes))
        }
    }

    /// The JSON of a field; nil if the field is absent or null. Setting it replaces the previous value.
    public subscript(name: String) -> [UInt8]? {
        get { fields.first { $0.name == name && !$0.json.elementsEqual("null".utf8) }?.json }
        set {
            let index = fields.firstIndex { $0.name == name }
            switch (index, newValue) {
            case (let index?, let json?): fields[index].json = json
            case (let index?, nil): fields.remove(at: index)
            case (nil, let json?): fields.append((name, json))
            case (nil, nil): break
            }
        }
    }

    /// Sets a field to a value.
    public mutating func set(_ name: String, _ value: some JSONWritable) { self[name] = value.json }

    /// Sets a member of a field that is an object.
    public mutating func set(_ name: String, _ member: String, _ json: [UInt8]) {
        // A value that is not an object is replaced.
        var members = self[name].flatMap { try? JobBuilder(json: $0, maximumSize: $0.count) } ?? JobBuilder()
        members[member] = json
        self[name] = members.json
    }

    /// Returns the builder with its fields overridden by those of another one.
    public func overlaid(by other: JobBuilder) -> JobBuilder {
        var draft = self
        for field in other.fields { draft[field.name] = field.json }
        return draft
    }

    /// The message as JSON.
    public var json: [UInt8] {
        var writer = JSONWriter()
        writer.object { writer in
            for field in fields {
                writer.name(field.name)
                writer.raw(field.json)
            }
        }
        return writer.bytes
    }
}

extension JSONWritable {
    /// The value as JSON.
    public var json: [UInt8] {
        var writer = JSONWriter(capacity: 64)
        writer.value(self)
        return writer.bytes
    }
}

/// A job message that was validated with the decoder that workers use. Submitters use it to report errors early.
public struct ValidatedJob: Sendable {
    /// The value of the Kafka record.
    public let message: [UInt8]
    /// The job that workers decode from the message.
    public let job: Job
    /// The result key of each variant.
    public let keys: [ResultKey]
    /// The lane, given by the field `priority`.
    public let lane: Lane
    /// The fields that are unknown to this version.
    public let unknownFields: [String]
    /// The unknown fields as human-readable warnings, limited in number, as in the job's terminal event.
    public var warnings: [String] { DecodedJob.warnings(of: unknownFields) }

    /// Validates a job.
    /// - Parameter fallbackID: The id of a job that has none.
    /// - Throws: ``InvalidJobError`` if the job is invalid.
    public init(_ draft: JobBuilder, fallbackID: String, by reader: JobDecoder) throws(InvalidJobError) {
        let json = draft.json
        let reading = try reader.read(json, defaultID: fallbackID)
        job = reading.job
        if let preset = job.preset {
            // Workers that have an older version of the preset ask for the version that was validated here.
            var draft = draft
            draft.set("preset", preset)
            message = draft.json
        } else {
            message = json
        }
        keys = reading.job.keys
        lane = reading.lane ?? .normal
        unknownFields = reading.unknownFields
    }
}

extension ResultKey {
    /// Creates the key of an output of a source.
    public init(_ request: SourceRequest, variant: Variant) {
        self.init(request, variant: variant) { SHA256.hash($0).description }
    }
}

extension Job {
    /// The result key of each variant.
    public var keys: [ResultKey] { variants.map { ResultKey(request, variant: $0) } }
}

extension SourceRequest {
    /// The hash of the source: the hash tag of all its keys.
    public var sourceHash: String { ResultKey.sourceHash(of: self) { SHA256.hash($0).description } }
}
