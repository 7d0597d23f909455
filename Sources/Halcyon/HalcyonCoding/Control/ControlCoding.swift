import HalcyonModel
import JSON

/// The error for a message on the topic `control` that this version cannot interpret.
public enum InvalidControlMessageError: Error, Sendable, CustomStringConvertible {
    /// The kind of message is unknown to this version.
    case unknown
    /// The message is malformed, for the given reason.
    case wrong(String)

    /// The reason, for logs.
    public var description: String {
        switch self {
        case .unknown: "unknown kind of control message"
        case .wrong(let reason): reason
        }
    }
}

extension ControlMessage: JSONWritable {
    /// Writes the message in the format of docs/control.md.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            switch self {
            case .cancel(.job(let id, let owner)):
                writer.member("cancel", id)
                writer.member("owner", owner)
            case .cancel(let target): writer.member("cancel", target)
            case .purge(let purge, let time):
                writer.member("purge", purge)
                writer.member("time", time)
            case .preset(let name): writer.member("preset", name)
            case .pause(let target, let time):
                writer.member("pause", target)
                writer.member("time", time)
            case .resume(let target, let time):
                writer.member("resume", target)
                writer.member("time", time)
            case .list(let request): writer.member("list", request)
            }
        }
    }

    /// The message as JSON.
    public var json: [UInt8] {
        var writer = JSONWriter(capacity: 256)
        writer.value(self)
        return writer.bytes
    }
}

extension Purge: JSONWritable {
    /// Writes the target and the tenant.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            switch target {
            case .source(let source): writer.member("source", source)
            case .tag(let tag): writer.member("tag", tag)
            case .key(let key): writer.member("key", key.description)
            case .tenant: break
            }
            writer.member("tenant", tenant)
        }
    }
}

extension CancelTarget: JSONWritable {
    /// Writes an object with the target and the tenant, or with the id of a job and its owner.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            switch self {
            case .job(let id, let owner):
                writer.member("id", id)
                writer.member("owner", owner)
            case .tag(let tag, let tenant):
                writer.member("tag", tag)
                writer.member("tenant", tenant)
            case .source(let source, let tenant):
                writer.member("source", source)
                writer.member("tenant", tenant)
            case .tenant(let tenant): writer.member("tenant", tenant)
            }
        }
    }
}

extension PauseTarget: JSONWritable {
    /// Writes an object with the lane or the tenant.
    public func write(to writer: inout JSONWriter) { writer.object { writeMember(to: &$0) } }

    /// Writes the lane or the tenant to an object that has further members.
    public func writeMember(to writer: inout JSONWriter) {
        switch self {
        case .lane(let lane): writer.member("lane", lane.rawValue)
        case .tenant(let tenant): writer.member("tenant", tenant)
        }
    }

    /// Decodes an object with one of `lane` and `tenant`.
    init(_ value: JSONElement) throws(JSONError) {
        var targets: [PauseTarget] = []
        try value.forEachGiven { name, value throws(JSONError) in
            switch name {
            case "lane": targets.append(.lane(try value.choice(of: Lane.allCases)))
            case "tenant": targets.append(.tenant(try JobFields.tenant(value)))
            default: break
            }
        }
        guard targets.count == 1 else { throw JSONError(.invalid, "expected one of lane and tenant") }
        self = targets[0]
    }
}

extension JobListRequest: JSONWritable {
    /// Writes the request without values that are defaults.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("reply", reply)
            if limit != Self.standardLimit { writer.member("limit", limit) }
            writer.member("tenant", tenant)
            writer.member("lane", lane?.rawValue)
        }
    }

    /// Decodes an object with `reply` and optionally `limit`, `tenant` and `lane`.
    init(_ value: JSONElement) throws(JSONError) {
        var request = JobListRequest(reply: "")
        try value.forEachGiven { name, value throws(JSONError) in
            switch name {
            case "reply": request.reply = try value.string()
            case "limit": request.limit = Int(try value.integer(in: 1...Int64(Self.mostJobs)))
            case "tenant": request.tenant = try JobFields.tenant(value)
            case "lane": request.lane = try value.choice(of: Lane.allCases)
            default: break
            }
        }
        guard Self.isReply(request.reply) else {
            throw JSONError(.invalid, "expected 1 to 64 letters, digits, hyphens and underscores", path: "reply")
        }
        self = request
    }
}

extension JobDecoder {
    /// Decodes a message of the topic `control`. The size limit is that of jobs, and unknown members are ignored.
    /// - Throws: ``InvalidControlMessageError`` if the message is malformed or of an unknown kind.
    public func control(_ bytes: [UInt8]) throws(InvalidControlMessageError) -> ControlMessage {
        var messages: [ControlMessage] = []
        var (time, owner): (Int64?, String?)
        do throws(JSONError) {
            let root = try JSON.parse(bytes, maximumSize: maximumBytes)
            try root.forEachMember { name, value throws(JSONError) in
                switch name {
                case "cancel": messages.append(.cancel(try cancellation(value)))
                case "purge": messages.append(.purge(try purge(value)))
                case "preset": messages.append(.preset(try PresetReference(value).name))
                case "pause": messages.append(.pause(try PauseTarget(value)))
                case "resume": messages.append(.resume(try PauseTarget(value)))
                case "list": messages.append(.list(try JobListRequest(value)))
                case "time": time = try value.given.map { given throws(JSONError) in try given.integer() }
                case "owner": owner = try value.given.map { given throws(JSONError) in try given.string() }
                default: break
                }
            }
        } catch {
            throw .wrong("\(error)")
        }
        guard let message = messages.first else { throw .unknown }
        guard messages.count == 1 else {
            throw .wrong("expected one of cancel, purge, preset, pause, resume and list, found \(messages.count)")
        }
        return switch message {
        case .cancel(.job(let id, _)): .cancel(.job(id, ownedBy: owner))
        case .purge(let purge, _): .purge(purge, at: time)
        case .pause(let target, _): .pause(target, at: time)
        case .resume(let target, _): .resume(target, at: time)
        case .cancel, .preset, .list: message
        }
    }

    /// Decodes the jobs to cancel: the id of a job, or an object with one of `source` and `tag`, and optionally
    /// `tenant`, or with nothing but `tenant`.
    /// - Throws: ``JSONError`` if the value is malformed.
    public func cancellation(_ bytes: [UInt8]) throws(JSONError) -> CancelTarget {
        try cancellation(JSON.parse(bytes, maximumSize: maximumBytes))
    }

    private func cancellation(_ value: JSONElement) throws(JSONError) -> CancelTarget {
        guard value.kind == .object else { return .job(try JobFields.id(value)) }
        var targets: [(_ tenant: String?) -> CancelTarget] = []
        let tenant = try tenant(of: value, alone: "a cancellation of all jobs of a tenant") {
            name, value throws(JSONError) in
            switch name {
            case "source":
                let source = try source(value)
                targets.append { .source(source, of: $0) }
            case "tag":
                let tag = try value.tag()
                targets.append { .tag(tag, of: $0) }
            default: return false
            }
            return true
        }
        if targets.isEmpty, let tenant { return .tenant(tenant) }
        guard targets.count == 1 else {
            throw JSONError(.invalid, "expected one of source and tag, or tenant alone")
        }
        return targets[0](tenant)
    }

    /// Decodes a purge: an object with one of `source`, `tag` and `key`, and optionally `tenant`, or with nothing but
    /// `tenant`.
    /// - Throws: ``JSONError`` if the object is malformed.
    public func purge(_ bytes: [UInt8]) throws(JSONError) -> Purge {
        try purge(JSON.parse(bytes, maximumSize: maximumBytes))
    }

    private func purge(_ value: JSONElement) throws(JSONError) -> Purge {
        var targets: [Purge.Target] = []
        let tenant = try tenant(of: value, alone: "a purge of all results of a tenant") {
            name, value throws(JSONError) in
            switch name {
            case "source": targets.append(.source(try source(value)))
            case "tag": targets.append(.tag(try value.tag()))
            case "key": targets.append(.key(try value.resultKey()))
            default: return false
            }
            return true
        }
        if targets.isEmpty, let tenant { targets.append(.tenant(tenant)) }
        guard targets.count == 1 else {
            throw JSONError(.invalid, "expected one of source, tag and key, or tenant alone")
        }
        return Purge(targets[0], of: tenant)
    }

    /// Decodes the tenant of a selection. If it selects everything of the tenant, unknown members are errors, because a
    /// misspelled target must not do that.
    /// - Parameters:
    ///   - description: The selection of everything of a tenant.
    ///   - read: Decodes a member. Returns false if the member is not a target.
    private func tenant(
        of value: JSONElement, alone description: String,
        _ read: (JSONName, JSONElement) throws(JSONError) -> Bool
    ) throws(JSONError) -> String? {
        var (tenant, unknown): (String?, String?)
        var hasTarget = false
        try value.forEachMember { name, value throws(JSONError) in
            if case "tenant" = name {
                tenant = try value.given.map { given throws(JSONError) in try JobFields.tenant(given) }
            } else if try read(name, value) {
                hasTarget = true
            } else {
                unknown = name.description
            }
        }
        if !hasTarget, tenant != nil, let unknown {
            throw JSONError(.invalid, "expected nothing else in \(description)", path: unknown)
        }
        return tenant
    }
}

extension JSONElement {
    fileprivate func resultKey() throws(JSONError) -> ResultKey {
        guard let key = ResultKey(try string()) else { throw JSONError(.invalid, "expected a result's key") }
        return key
    }
}
