/// A reply of the server (RESP2; what RESP3 adds comes as the nearest of these).
public enum RedisValue: Hashable, Sendable {
    /// No value.
    case null
    /// A 64-bit integer.
    case integer(Int)
    /// A bulk string: bytes of any kind.
    case bytes([UInt8])
    /// A status such as `OK` or `QUEUED`.
    case status(String)
    /// An error in the place of a reply; inside arrays and pipelines it stands for its command alone.
    case error(RedisError)
    /// Replies in order. RESP3's maps are keys and values in turn.
    case array([RedisValue])
    /// RESP3's floating-point number.
    case double(Double)
    /// RESP3's truth value.
    case boolean(Bool)

    /// Whether there is no value.
    public var isNull: Bool { self == .null }

    /// The bytes of a bulk string or a status, else nil.
    public var bytes: [UInt8]? {
        switch self {
        case .bytes(let bytes): bytes
        case .status(let text): Array(text.utf8)
        default: nil
        }
    }

    /// The text of a bulk string or a status, mended where it is not UTF-8, else nil.
    public var string: String? {
        switch self {
        case .bytes(let bytes): String(decoding: bytes, as: UTF8.self)
        case .status(let text): text
        default: nil
        }
    }

    /// An integer, or a string that spells one, else nil.
    public var integer: Int? {
        switch self {
        case .integer(let value): value
        case .bytes, .status: string.flatMap { Int($0) }
        default: nil
        }
    }

    /// The elements of an array, else nil.
    public var array: [RedisValue]? {
        if case .array(let elements) = self { elements } else { nil }
    }
}

/// One word of a command. Literals of text and integers may stand for it: `send("SET", .string(key), .bytes(body), "PX", 500)`.
///
/// Every word is sent with its length: nothing in it can end it or start another command.
public enum RedisArgument: Hashable, Sendable {
    /// Text, sent as UTF-8.
    case string(String)
    /// Bytes, sent as they are; large ones go to hiredis without a copy.
    case bytes([UInt8])
    /// An integer, sent in decimal.
    case integer(Int)
}

extension RedisArgument: ExpressibleByStringInterpolation {
    /// A literal.
    public init(stringLiteral value: String) { self = .string(value) }
}

extension RedisArgument: ExpressibleByIntegerLiteral {
    /// A literal.
    public init(integerLiteral value: Int) { self = .integer(value) }
}

/// Why a command has no reply, or what the server has against it.
public struct RedisError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kinds of failure.
    public enum Code: Hashable, Sendable {
        /// There is no connection; the command was never sent.
        case unavailable
        /// The connection went while the command was under way: the server may have run it or not.
        case connectionLost
        /// No reply in time: the server may have run the command, may yet run it, or not.
        case timeout
        /// The server answered with an error; its first word, such as `OOM`, `NOSCRIPT`, `READONLY`, `LOADING` or `ERR`.
        case server(String)
        /// What came is not the Redis protocol, or nests deeper than hiredis reads (7 levels in 0.14).
        case protocolError
        /// The task was cancelled: the server may have run the command or not.
        case cancelled
        /// The client is closed.
        case closed
        /// A command that a cluster cannot run as it is: its keys lie in several slots, or it does not say which node it means.
        case misuse
        /// The endpoint's text is wrong, or names something that this build cannot do.
        case badEndpoint
    }

    /// The kind of failure.
    public let code: Code
    /// What happened, for people. It never holds a password.
    public let message: String

    /// An error of this kind.
    public init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// An error reply: its first word is the code (Redis serialization protocol, "Simple errors").
    init(reply: String) {
        self.init(.server(String(reply.prefix { $0 != " " })), reply)
    }

    /// Whether the same command may succeed when sent again in a while. Whether sending it twice does harm is for the caller
    /// to know.
    public var isRetriable: Bool {
        switch code {
        case .unavailable, .connectionLost, .timeout: true
        case .server(let prefix): Self.passingStates.contains(prefix)
        case .protocolError, .cancelled, .closed, .misuse, .badEndpoint: false
        }
    }

    /// States of a server that end by themselves: loading, a running script, a failover, slots on their way.
    private static let passingStates: Set = [
        "LOADING", "BUSY", "TRYAGAIN", "CLUSTERDOWN", "MASTERDOWN", "READONLY", "MOVED", "ASK",
    ]

    /// The message.
    public var description: String { message }
}
