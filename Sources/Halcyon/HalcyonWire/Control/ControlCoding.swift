import HalcyonModel
import JSON

/// A message on the topic `control` that says nothing to this version.
public enum ControlRefusal: Error, Sendable, CustomStringConvertible {
    /// It is of a kind that this version does not know: another one may.
    case unknown
    /// It is no such message; why.
    case wrong(String)

    /// For logs.
    public var description: String {
        switch self {
        case .unknown: "a kind of message that this version does not know"
        case .wrong(let reason): reason
        }
    }
}

extension ControlMessage: JSONWritable {
    /// As docs/control.md describes it.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            switch self {
            case .cancel(let id): writer.member("cancel", id)
            case .purge(let purge): writer.member("purge", purge)
            }
        }
    }

    /// The message.
    public var json: [UInt8] {
        var writer = JSONWriter(capacity: 256)
        writer.value(self)
        return writer.bytes
    }
}

extension Purge: JSONWritable {
    /// What, and whose.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            switch target {
            case .source(let source): writer.member("source", source)
            case .tag(let tag): writer.member("tag", tag)
            case .key(let key): writer.member("key", key.description)
            }
            writer.member("tenant", tenant)
        }
    }
}

extension JobReader {
    /// Reads a message of the topic `control`, of the length that a job may have. Members that mean nothing here are passed over.
    /// - Throws: ``ControlRefusal``.
    public func control(_ bytes: [UInt8]) throws(ControlRefusal) -> ControlMessage {
        var id: String?
        var purge: Purge?
        do throws(JSONError) {
            let root = try JSON.parse(bytes, maximumSize: maximumBytes)
            try root.forEachMember { name, value throws(JSONError) in
                switch name {
                case "cancel": id = try JobFields.id(value)
                case "purge": purge = try self.purge(value)
                default: break
                }
            }
        } catch {
            throw .wrong("\(error)")
        }
        switch (id, purge) {
        case (let id?, nil): return .cancel(id)
        case (nil, let purge?): return .purge(purge)
        case (nil, nil): throw .unknown
        case (_?, _?): throw .wrong("cancel and purge are two messages")
        }
    }

    /// Reads a purge: an object of one of `source`, `tag` and `key`, and perhaps `tenant`.
    /// - Throws: ``JSONError``.
    public func purge(_ bytes: [UInt8]) throws(JSONError) -> Purge {
        try purge(JSON.parse(bytes, maximumSize: maximumBytes))
    }

    private func purge(_ value: JSONElement) throws(JSONError) -> Purge {
        var targets: [Purge.Target] = []
        var tenant: String?
        try value.forEachMember { name, value throws(JSONError) in
            switch name {
            case "source": targets.append(.source(try source(value)))
            case "tag": targets.append(.tag(try value.tag()))
            case "key": targets.append(.key(try value.resultKey()))
            case "tenant": tenant = try value.given.map { given throws(JSONError) in try JobFields.tenant(given) }
            default: break
            }
        }
        guard targets.count == 1 else { throw JSONError(.invalid, "expected one of source, tag and key") }
        return Purge(targets[0], of: tenant)
    }
}

extension JSONElement {
    fileprivate func resultKey() throws(JSONError) -> ResultKey {
        guard let key = ResultKey(try string()) else { throw JSONError(.invalid, "expected a result's key") }
        return key
    }
}
