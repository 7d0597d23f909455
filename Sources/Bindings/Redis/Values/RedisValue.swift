/// A reply of the server. Types that only RESP3 has are converted to the nearest of these cases.
public enum RedisValue: Hashable, Sendable {
    /// No value.
    case null
    /// A 64-bit integer.
    case integer(Int)
    /// A bulk string of arbitrary bytes.
    case bytes([UInt8])
    /// A status such as `OK` or `QUEUED`.
    case status(String)
    /// An error reply. In arrays and pipelines it applies only to its own command.
    case error(RedisError)
    /// An array of replies. RESP3 maps become alternating keys and values.
    case array([RedisValue])
    /// A RESP3 floating-point number.
    case double(Double)
    /// A RESP3 Boolean.
    case boolean(Bool)

    /// True if the reply is null.
    public var isNull: Bool { self == .null }

    /// The bytes of a bulk string or a status; otherwise nil.
    public var bytes: [UInt8]? {
        switch self {
        case .bytes(let bytes): bytes
        case .status(let text): Array(text.utf8)
        default: nil
        }
    }

    /// The text of a bulk string or a status; otherwise nil. Invalid UTF-8 is replaced.
    public var string: String? {
        switch self {
        case .bytes(let bytes): String(decoding: bytes, as: UTF8.self)
        case .status(let text): text
        default: nil
        }
    }

    /// The value of an integer, or of a string that spells one; otherwise nil.
    public var integer: Int? {
        switch self {
        case .integer(let value): value
        case .bytes, .status: string.flatMap { Int($0) }
        default: nil
        }
    }

    /// The elements of an array; otherwise nil.
    public var array: [RedisValue]? {
        if case .array(let elements) = self { elements } else { nil }
    }
}

/// An argument of a command. String and integer literals convert to it: `send("SET", .string(key), .bytes(body), "PX",
/// 500)`.
///
/// Each argument is sent with its length, so its contents cannot end it or start another command.
public enum RedisArgument: Hashable, Sendable {
    /// Text, sent as UTF-8.
    case string(String)
    /// Bytes, sent as they are. Large ones are passed to hiredis without a copy.
    case bytes([UInt8])
    /// An integer, sent in decimal.
    case integer(Int)
}

extension RedisArgument: ExpressibleByStringInterpolation {
    /// Creates a string argument from a literal.
    public init(stringLiteral value: String) { self = .string(value) }
}

extension RedisArgument: ExpressibleByIntegerLiteral {
    /// Creates an integer argument from a literal.
    public init(integerLiteral value: Int) { self = .integer(value) }
}

/// The reason for which a command has no reply, or the error that the server returned.
public struct RedisError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kinds of failure.
    public enum Code: Hashable, Sendable {
        /// There is no connection. The command was not sent.
        case unavailable
        /// The connection was lost while the command was in flight. The server may have run it.
        case connectionLost
        /// No reply arrived in time. The server may have run the command, or may still run it.
        case timeout
        /// An error reply. The value is its first word, such as `OOM`, `NOSCRIPT`, `READONLY`, `LOADING` or `ERR`.
        case server(String)
        /// The reply violates the Redis protocol, or is nested deeper than hiredis supports (7 levels in 0.14).
        case protocolError
        /// The task was cancelled. The server may have run the command.
        case cancelled
        /// The client is closed.
        case closed
        /// The command cannot run in a cluster as it is: its keys are in several hash slots, or it must name a node.
        case misuse
        /// The endpoint's URL is invalid, or requires a feature that this build lacks.
        case badEndpoint
    }

    /// The kind of failure.
    public let code: Code
    /// A description of the failure. It never contains a password.
    public let message: String

    /// Creates an error of a kind.
    public init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// Creates an error from an error reply, whose first word is the code (Redis serialization protocol, "Simple
    /// errors").
    init(reply: String) {
        self.init(.server(String(reply.prefix { $0 != " " })), reply)
    }

    /// True if the same command may succeed when sent again later. The caller must know if it is safe to run it twice.
    public var isRetriable: Bool {
        switch code {
        case .unavailable, .connectionLost, .timeout: true
        case .server(let prefix): Self.passingStates.contains(prefix)
        case .protocolError, .cancelled, .closed, .misuse, .badEndpoint: false
        }
    }

    /// Transient states of a server: loading, a running script, a failover, migrating slots.
    private static let passingStates: Set = [
        "LOADING", "BUSY", "TRYAGAIN", "CLUSTERDOWN", "MASTERDOWN", "READONLY", "MOVED", "ASK",
    ]

    /// The message of the error.
    public var description: String { message }
}
