import Digests
import HalcyonModel
import JSON

/// A job on its way to become a message: its fields by name, each as JSON. Nothing is checked here; ``JobReader`` does that.
public struct JobDraft: Sendable {
    private var fields: [(name: String, json: [UInt8])] = []

    /// No field.
    public init() {}

    /// The members of an object.
    /// - Throws: ``JSONError`` when the text is no JSON object.
    public init(json bytes: [UInt8], maximumSize: Int) throws(JSONError) {
        try JSON.parse(bytes, maximumSize: maximumSize).forEachMember { name, value throws(JSONError) in
            fields.append(("\(name)", value.bytes))
        }
    }

    /// The JSON of a field, nil for null as for none; setting it takes the place of what was there.
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

    /// Sets one member of a field that is an object.
    public mutating func set(_ name: String, _ member: String, _ json: [UInt8]) {
        // What is no object gives way to one.
        var members = self[name].flatMap { try? JobDraft(json: $0, maximumSize: $0.count) } ?? JobDraft()
        members[member] = json
        self[name] = members.json
    }

    /// This draft with the fields of another in place of its own.
    public func overlaid(by other: JobDraft) -> JobDraft {
        var draft = self
        for field in other.fields { draft[field.name] = field.json }
        return draft
    }

    /// The message.
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
    /// The value alone as JSON.
    public var json: [UInt8] {
        var writer = JSONWriter(capacity: 64)
        writer.value(self)
        return writer.bytes
    }
}

/// A job as a message, which has been read and checked by the very reader that workers have: for who submits jobs.
public struct PreparedJob: Sendable {
    /// The value of the record.
    public let message: [UInt8]
    /// What workers will read in it.
    public let job: Job
    /// One for each variant.
    public let keys: [ResultKey]
    /// Where it is to be put, by the field `priority`.
    public let lane: Lane
    /// Fields that mean nothing to this version.
    public let unknownFields: [String]
    /// The same as texts for people, few enough to be printed: what the event that the job is ready will say of them.
    public var warnings: [String] { JobReading.warnings(of: unknownFields) }

    /// - Parameter fallbackID: the id of a job that brings none.
    /// - Throws: ``JobRefusal``.
    public init(_ draft: JobDraft, fallbackID: String, by reader: JobReader) throws(JobRefusal) {
        message = draft.json
        let reading = try reader.read(message, defaultID: fallbackID)
        job = reading.job
        keys = reading.job.keys
        lane = reading.lane ?? .normal
        unknownFields = reading.unknownFields
    }
}

extension ResultKey {
    /// The key of one output of a source.
    public init(_ request: SourceRequest, variant: Variant) {
        self.init(request, variant: variant) { SHA256.hash($0).description }
    }
}

extension Job {
    /// The key of each variant's result.
    public var keys: [ResultKey] { variants.map { ResultKey(request, variant: $0) } }
}

extension SourceRequest {
    /// What all keys of the source have between their braces.
    public var sourceHash: String { ResultKey.sourceHash(of: self) { SHA256.hash($0).description } }
}
