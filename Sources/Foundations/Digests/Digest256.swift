/// 32 bytes of a hash, held in place.
public struct Digest256: Hashable, Sendable, CustomStringConvertible {
    private let words: (UInt64, UInt64, UInt64, UInt64)

    /// How many bytes there are.
    public static let count = 32

    /// Takes the digest as a hash function gives it.
    /// - Parameter bytes: 32 of them.
    public init(_ bytes: UnsafeRawBufferPointer) {
        precondition(bytes.count == Self.count, "a digest has 32 bytes")
        words = bytes.loadUnaligned(as: (UInt64, UInt64, UInt64, UInt64).self)
    }

    /// The bytes in order.
    public var bytes: [UInt8] { withUnsafeBytes { Array($0) } }

    /// 64 lowercase hexadecimal digits.
    public var description: String {
        String(unsafeUninitializedCapacity: Self.count * 2) { digits in
            withUnsafeBytes { bytes in
                for (index, byte) in bytes.enumerated() {
                    digits[2 * index] = hexadecimal(byte >> 4)
                    digits[2 * index + 1] = hexadecimal(byte & 15)
                }
            }
            return Self.count * 2
        }
    }

    /// Reads the form that ``description`` gives; nil for anything else.
    public init?(_ hexadecimal: some StringProtocol) {
        let digits = hexadecimal.utf8
        guard digits.count == Self.count * 2 else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Self.count)
        var high: UInt8?
        for digit in digits {
            guard let value = nibble(digit) else { return nil }
            if let first = high {
                bytes.append(first << 4 | value)
                high = nil
            } else {
                high = value
            }
        }
        self = bytes.withUnsafeBytes { Digest256($0) }
    }

    /// Runs `body` with the 32 bytes.
    public func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        try Swift.withUnsafeBytes(of: words, body)
    }

    /// Whether all bytes are equal.
    public static func == (left: Digest256, right: Digest256) -> Bool {
        left.words.0 == right.words.0 && left.words.1 == right.words.1
            && left.words.2 == right.words.2 && left.words.3 == right.words.3
    }

    /// One word is enough: the digest is a hash already.
    public func hash(into hasher: inout Hasher) { hasher.combine(words.0) }
}

private func hexadecimal(_ nibble: UInt8) -> UInt8 {
    nibble < 10 ? UInt8(ascii: "0") + nibble : UInt8(ascii: "a") + nibble - 10
}

private func nibble(_ digit: UInt8) -> UInt8? {
    switch digit {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
    default: nil
    }
}
