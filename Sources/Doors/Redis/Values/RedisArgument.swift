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
