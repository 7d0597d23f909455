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
