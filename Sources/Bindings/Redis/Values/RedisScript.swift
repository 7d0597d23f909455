/// A Lua script and the SHA-1 that the server identifies it by.
///
/// Create each script once and reuse it, because the initializer computes the SHA-1.
public struct RedisScript: Hashable, Sendable {
    /// The Lua source.
    public let source: String
    /// The SHA-1 of the source in hexadecimal, as EVALSHA expects it.
    public let sha1: String

    /// Creates a script from its source.
    public init(_ source: String) {
        self.source = source
        sha1 = SHA1.hex(of: source.utf8)
    }

    /// Returns the command that runs the script by its SHA-1.
    func evalsha(_ keys: [RedisArgument], _ arguments: [RedisArgument]) -> [RedisArgument] {
        ["EVALSHA", .string(sha1), .integer(keys.count)] + keys + arguments
    }

    /// Returns the command that sends the source, runs it, and has the server cache it.
    func eval(_ keys: [RedisArgument], _ arguments: [RedisArgument]) -> [RedisArgument] {
        ["EVAL", .string(source), .integer(keys.count)] + keys + arguments
    }
}

/// SHA-1 (RFC 3174), used only because Redis identifies scripts by it. It is not secure.
enum SHA1 {
    /// Returns the digest of `bytes` as 40 lowercase hexadecimal digits.
    static func hex(of bytes: some Collection<UInt8>) -> String {
        var state: [UInt32] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0]
        let padded = padded(bytes)
        for start in stride(from: 0, to: padded.count, by: 64) {
            absorb(padded[start..<start + 64], into: &state)
        }
        let digits = Array("0123456789abcdef")
        return String(
            state.flatMap { word in
                stride(from: 28, through: 0, by: -4).map { digits[Int(word >> UInt32($0)) & 15] }
            })
    }

    /// The message, a one bit, zeros, and the length in bits, padded to blocks of 64 bytes.
    private static func padded(_ bytes: some Collection<UInt8>) -> [UInt8] {
        var message = Array(bytes)
        let bits = UInt64(message.count) * 8
        message.append(0x80)
        message.append(contentsOf: repeatElement(0, count: (120 - message.count % 64) % 64))
        for shift in stride(from: UInt64(56), through: 0, by: -8) {
            message.append(UInt8(truncatingIfNeeded: bits >> shift))
        }
        return message
    }

    private static func absorb(_ block: ArraySlice<UInt8>, into state: inout [UInt32]) {
        var words = [UInt32](repeating: 0, count: 80)
        for (offset, byte) in block.enumerated() { words[offset / 4] = words[offset / 4] << 8 | UInt32(byte) }
        for index in 16..<80 {
            words[index] = rotated(words[index - 3] ^ words[index - 8] ^ words[index - 14] ^ words[index - 16], by: 1)
        }
        var (a, b, c, d, e) = (state[0], state[1], state[2], state[3], state[4])
        for index in 0..<80 {
            let (mix, constant): (UInt32, UInt32) =
                switch index {
                case 0..<20: (b & c | ~b & d, 0x5a82_7999)
                case 20..<40: (b ^ c ^ d, 0x6ed9_eba1)
                case 40..<60: (b & c | b & d | c & d, 0x8f1b_bcdc)
                default: (b ^ c ^ d, 0xca62_c1d6)
                }
            let next = rotated(a, by: 5) &+ mix &+ e &+ constant &+ words[index]
            (a, b, c, d, e) = (next, a, rotated(b, by: 30), c, d)
        }
        for (index, word) in [a, b, c, d, e].enumerated() { state[index] &+= word }
    }

    private static func rotated(_ word: UInt32, by count: UInt32) -> UInt32 { word << count | word >> (32 - count) }
}
