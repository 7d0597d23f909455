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
            case .cancel(let id): writer.member("cancel", id)
            case .purge(let purge, let time):
                writer.member("purge", purge)
                writer.member("time", time)
            case .preset(let name): writer.member("preset", name)
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

extension JobDecoder {
    /// Decodes a message of the topic `control`. The size limit is that of jobs, and unknown members are ignored.
    /// - Throws: ``InvalidControlMessageError`` if the message is malformed or of an unknown kind.
    public func control(_ bytes: [UInt8]) throws(InvalidControlMessageError) -> ControlMessage {
        var messages: [ControlMessage] = []
        var time: Int64?
        do throws(JSONError) {
            let root = try JSON.parse(bytes, maximumSize: maximumBytes)
            try root.forEachMember { name, value throws(JSONError) in
                switch name {
                case "cancel": messages.append(.cancel(try JobFields.id(value)))
                case "purge": messages.append(.purge(try self.purge(value)))
                case "preset": messages.append(.preset(try PresetReference(value).name))
                case "time": time = try value.given.map { given throws(JSONError) in try given.integer() }
                default: break
                }
            }
        } catch {
            throw .wrong("\(error)")
        }
        guard let message = messages.first else { throw .unknown }
        guard messages.count == 1 else {
            throw .wrong("expected one of cancel, purge and preset, found \(messages.count)")
        }
        if case .purge(let purge, _) = message { return .purge(purge, at: time) }
        return message
    }

    /// Decodes a purge: an object with one of `source`, `tag` and `key`, and optionally `tenant`, or with nothing but
    /// `tenant`.
    /// - Throws: ``JSONError`` if the object is malformed.
    public func purge(_ bytes: [UInt8]) throws(JSONError) -> Purge {
        try purge(JSON.parse(bytes, maximumSize: maximumBytes))
    }

    private func purge(_ value: JSONElement) throws(JSONError) -> Purge {
        var targets: [Purge.Target] = []
        var (tenant, unknown): (String?, String?)
        try value.forEachMember { name, value throws(JSONError) in
            switch name {
            case "source": targets.append(.source(try source(value)))
            case "tag": targets.append(.tag(try value.tag()))
            case "key": targets.append(.key(try value.resultKey()))
            case "tenant": tenant = try value.given.map { given throws(JSONError) in try JobFields.tenant(given) }
            default: unknown = name.description
            }
        }
        if targets.isEmpty, let tenant {
            // A misspelled target must not purge all results.
            if let unknown {
                throw JSONError(.invalid, "expected nothing else in a purge of all results of a tenant", path: unknown)
            }
            targets.append(.tenant(tenant))
        }
        guard targets.count == 1 else {
            throw JSONError(.invalid, "expected one of source, tag and key, or tenant alone")
        }
        return Purge(targets[0], of: tenant)
    }
}

extension JSONElement {
    fileprivate func resultKey() throws(JSONError) -> ResultKey {
        guard let key = ResultKey(try string()) else { throw JSONError(.invalid, "expected a result's key") }
        return key
    }
}
