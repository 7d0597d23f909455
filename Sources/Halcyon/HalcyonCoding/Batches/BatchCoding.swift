import Formats
import HalcyonModel
import JSON

extension BatchMembership: JSONWritable {
    /// Decodes the field `batch`: the id of the batch, or an object with `id` and `index`.
    init(_ value: JSONElement) throws(JSONError) {
        guard value.kind == .object else {
            self.init(batch: try value.batchID())
            return
        }
        var (id, index): (String?, Int?)
        try value.forEachMember { name, value throws(JSONError) in
            switch name {
            case "id": id = try value.batchID()
            case "index":
                index = try value.given.map { given throws(JSONError) in
                    Int(try given.integer(in: 0...Int64(Batch.highestIndex)))
                }
            default: throw JSONError(.unknown, "unknown field")
            }
        }
        guard let id else { throw JSONError(.missing, "is missing: the batch that the job belongs to", path: "id") }
        self.init(batch: id, index: index)
    }

    /// Writes an object with the id of the batch and the index of the job.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("id", batch)
            writer.member("index", index)
        }
    }
}

extension JSONElement {
    func batchID() throws(JSONError) -> String {
        let id = try string()
        guard Batch.isID(id) else {
            throw JSONError(
                .invalid, "expected 1 to \(Batch.longestID) letters, digits, dots, hyphens, underscores and colons")
        }
        return id
    }
}

extension Batch: JSONWritable {
    /// Writes the batch as an object, as in its events and in responses of the gateway.
    public func write(to writer: inout JSONWriter) { writer.object { writeMembers(to: &$0) } }

    /// Writes the members of the object.
    public func writeMembers(to writer: inout JSONWriter) {
        writer.member("id", id)
        writer.member("state", state.rawValue)
        writer.member("tenant", tenant)
        writer.member("createdAt", Timestamp(seconds: Double(created) / 1000).rfc3339)
        writer.member("cancelledAt", cancelled.map { Timestamp(seconds: Double($0) / 1000).rfc3339 })
        writer.member("completedAt", completed.map { Timestamp(seconds: Double($0) / 1000).rfc3339 })
        writer.member("prefix", prefix)
        writer.member("preset", preset)
        writer.member("submitted", state == .listing ? submitted : nil)
        writer.member("total", total)
        writer.member("error", error)
        writer.member("ended", counts.ended)
        writer.member("counts", counts)
        writer.member("failures", counts.failed == 0 ? nil : "/v1/batches/\(id)/failures")
    }
}

extension BatchError: JSONWritable {
    /// Writes an object with the code and the message.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("code", code)
            writer.member("message", message)
        }
    }

    fileprivate init(_ value: JSONElement) throws(JSONError) {
        self.init(code: "", message: "")
        try value.forEachMember { name, value throws(JSONError) in
            switch name {
            case "code": code = try value.string()
            case "message": message = try value.string()
            default: break
            }
        }
    }
}

extension BatchListing: JSONWritable {
    /// Writes an object with the contents, the template, the position and the number of jobs.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            switch contents {
            case .prefix(let url): writer.member("prefix", url)
            case .preset(let name, let tenant, let reload):
                writer.member("preset", name)
                writer.member("tenant", tenant)
                writer.member("reload", reload ? true : nil)
            }
            writer.name("template")
            writer.raw(template)
            writer.member("after", after)
            writer.member("submitted", submitted == 0 ? nil : submitted)
        }
    }

    fileprivate init(_ value: JSONElement) throws(JSONError) {
        var (prefix, preset, tenant, reload): (String?, String?, String?, Bool) = (nil, nil, nil, false)
        self.init(.prefix(""), template: Array("{}".utf8))
        try value.forEachMember { name, value throws(JSONError) in
            switch name {
            case "prefix": prefix = try value.string()
            case "preset": preset = try PresetReference(value).name
            case "tenant": tenant = try JobFields.tenant(value)
            case "reload": reload = try value.bool()
            case "template":
                guard value.kind == .object else { throw JSONError(.wrongType, "expected an object") }
                template = value.bytes
            case "after": after = try value.string()
            case "submitted": submitted = try value.count()
            default: break
            }
        }
        switch (prefix, preset) {
        case (let prefix?, nil): contents = .prefix(prefix)
        case (nil, let preset?): contents = .preset(preset, tenant: tenant, reload: reload)
        default: throw JSONError(.invalid, "expected either prefix, such as s3://bucket/path/, or preset")
        }
    }
}

extension Batch.Counts: JSONWritable {
    /// Writes an object with the number of each outcome.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("ready", ready)
            writer.member("failed", failed)
            writer.member("cancelled", cancelled)
            writer.member("superseded", superseded)
        }
    }

    fileprivate init(_ value: JSONElement) throws(JSONError) {
        self.init()
        try value.forEachMember { name, value throws(JSONError) in
            switch name {
            case "ready": ready = try value.count()
            case "failed": failed = try value.count()
            case "cancelled": cancelled = try value.count()
            case "superseded": superseded = try value.count()
            default: break
            }
        }
    }
}

extension BatchFailure: JSONWritable {
    /// Writes the failure as an object.
    public func write(to writer: inout JSONWriter) { writer.object { writeMembers(to: &$0) } }

    /// Writes the members of the object.
    public func writeMembers(to writer: inout JSONWriter) {
        writer.member("job", job)
        writer.member("index", index)
        writer.member("code", code)
        writer.member("message", message)
        writer.member("record", record)
    }

    /// Decodes a failure; returns nil if the JSON is none.
    public init?(json: [UInt8]) {
        // Another release may have stored something else.
        guard let root = try? JSON.parse(json, maximumSize: 1 << 20), let job = root.member("job")?.asString,
            let code = root.member("code")?.asString
        else { return nil }
        self.init(
            job: job, index: root.member("index")?.asInteger.map { Int($0) }, code: code,
            message: root.member("message")?.asString ?? "", record: root.member("record")?.asString ?? "")
    }
}

extension BatchEvent {
    /// The prefix of the kind in the CloudEvents `type`.
    public static let typePrefix = "halcyon.batch."

    /// The event in the format of `schemas/event.schema.json`.
    public var json: [UInt8] {
        var writer = JSONWriter(capacity: 512)
        writer.object { writer in
            writer.member("specversion", "1.0")
            writer.member("id", id)
            writer.member("source", "/halcyon")
            writer.member("type", Self.typePrefix + kind.rawValue)
            writer.member("subject", batch.id)
            writer.member("time", Timestamp(seconds: Double(time) / 1000).rfc3339)
            writer.member("datacontenttype", "application/json")
            writer.name("data")
            writer.object { $0.member("batch", batch) }
        }
        return writer.bytes
    }
}

extension BatchMessage {
    /// The message as JSON, in the format of docs/batches.md.
    public var json: [UInt8] {
        var writer = JSONWriter(capacity: 128)
        writer.object { writer in
            writer.member("batch", batch)
            switch body {
            case .open(let created, let tenant, let owner, let webhook):
                writer.name("open")
                writer.object { writer in
                    writer.member("created", created)
                    writer.member("tenant", tenant)
                    writer.member("owner", owner)
                    writer.member("webhook", webhook?.text)
                }
            case .list(let listing): writer.member("list", listing)
            case .close(let total, let error):
                writer.name("close")
                writer.object { writer in
                    writer.member("total", total)
                    writer.member("error", error)
                }
            case .counted: writer.member("counted", true)
            case .cancel: writer.member("cancel", true)
            case .completed(let counts): writer.member("completed", counts)
            }
        }
        return writer.bytes
    }

    /// The maximum size of a message, in bytes: twice that of a job, which a template may have.
    private static let maximumBytes = 2 << 20

    /// Decodes a message. Unknown members are ignored.
    /// - Throws: ``JSONError`` if the message is malformed or of an unknown kind.
    public init(json: [UInt8]) throws(JSONError) {
        var batch: String?
        var body: Body?
        try JSON.parse(json, maximumSize: Self.maximumBytes, maximumDepth: 64).forEachMember {
            name, value throws(JSONError) in
            switch name {
            case "batch": batch = try value.batchID()
            case "open":
                var (created, tenant, owner): (Int64, String?, String?) = (0, nil, nil)
                var webhook: Webhook?
                try value.forEachMember { name, value throws(JSONError) in
                    switch name {
                    case "created": created = try value.integer(in: 0...(1 << 53))
                    case "tenant": tenant = try JobFields.tenant(value)
                    case "owner": owner = try value.string()
                    case "webhook": webhook = try value.webhook()
                    default: break
                    }
                }
                body = .open(created: created, tenant: tenant, owner: owner, webhook: webhook)
            case "close":
                let total = try Batch.total(value)
                body = .close(
                    total: total,
                    error: try value.member("error")?.given.map { given throws(JSONError) in try BatchError(given) })
            case "list": body = .list(try BatchListing(value))
            case "counted": body = .counted
            case "cancel": body = .cancel
            case "completed": body = .completed(try Batch.Counts(value))
            default: break
            }
        }
        guard let batch else { throw JSONError(.missing, "is missing: the id of the batch", path: "batch") }
        guard let body else { throw JSONError(.invalid, "expected open, list, close, counted, cancel or completed") }
        self.init(batch, body)
    }
}

extension Batch {
    /// Decodes the number of jobs from an object with `total`.
    public static func total(_ value: JSONElement) throws(JSONError) -> Int {
        var total: Int?
        try value.forEachMember { name, value throws(JSONError) in
            if case "total" = name { total = try value.count() }
        }
        guard let total else { throw JSONError(.missing, "is missing: the number of jobs", path: "total") }
        return total
    }
}

extension JSONElement {
    /// Decodes a number of jobs.
    fileprivate func count() throws(JSONError) -> Int { Int(try integer(in: 0...Int64(Batch.highestIndex) + 1)) }
}
