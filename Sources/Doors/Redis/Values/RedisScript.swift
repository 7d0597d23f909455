/// A Lua script and the name the server gives it.
///
/// Make each script once and keep it: the name is computed on the way.
public struct RedisScript: Hashable, Sendable {
    /// The Lua text.
    public let source: String
    /// The SHA-1 of the text in hexadecimal, as EVALSHA wants it.
    public let sha1: String

    /// A script with this text.
    public init(_ source: String) {
        self.source = source
        sha1 = SHA1.hex(of: source.utf8)
    }

    /// The command that runs the script by its name.
    func evalsha(_ keys: [RedisArgument], _ arguments: [RedisArgument]) -> [RedisArgument] {
        ["EVALSHA", .string(sha1), .integer(keys.count)] + keys + arguments
    }

    /// The command that sends the script along, and has the server remember it.
    func eval(_ keys: [RedisArgument], _ arguments: [RedisArgument]) -> [RedisArgument] {
        ["EVAL", .string(source), .integer(keys.count)] + keys + arguments
    }
}
