/// A builder of zlib streams (RFC 1950) without a compressor.
enum Zlib {
    /// A stream of these bytes in stored blocks (RFC 1951, 3.2.4).
    static func stored(_ bytes: [UInt8]) -> [UInt8] {
        var stream: [UInt8] = [0x78, 0x01]
        var offset = 0
        repeat {
            let length = min(65535, bytes.count - offset)
            let isLast: UInt8 = offset + length == bytes.count ? 1 : 0
            stream += [isLast] + little(length, 2) + little(~length, 2) + bytes[offset..<offset + length]
            offset += length
        } while offset < bytes.count
        return stream + big(adler32(bytes), 4)
    }

    /// A stream of a byte of at most 143, repeated at least `count` times, in about a 159th of the size: one literal,
    /// then repetitions of the longest match of the fixed code (RFC 1951, 3.2.6).
    static func bomb(_ count: Int, of byte: UInt8 = 0) -> [UInt8] {
        var bits = BitWriter()
        bits.append(0b011, 3)  // the last block, of the fixed code
        // Codes are written with the highest bit first.
        bits.append(Int((0x30 + byte).reversedBits), 8)
        let matches = (count + 256) / 258
        for _ in 0..<matches {
            bits.append(0b0_0000_1010_0011, 13)  // length 258: 11000101, distance 1: 00000
        }
        bits.append(0, 7)  // the end
        // Adler-32 of n equal bytes.
        let (n, value) = (matches * 258 + 1, Int(byte))
        let (low, high) = ((1 + n * value) % 65521, (n + n * (n + 1) / 2 % 65521 * value) % 65521)
        return [0x78, 0x01] + bits.bytes + big(high << 16 | low, 4)
    }

    /// A deflate stream (RFC 1951) of the bytes `before`, at least `times` times `byte`, and the bytes `after`.
    static func deflated(_ before: [UInt8], _ byte: UInt8, times: Int, _ after: some Sequence<UInt8>) -> [UInt8] {
        // A stored block ends at a byte boundary. A block of the fixed code is closed by an empty stored one.
        var bits = BitWriter()
        for byte in [0] + little(before.count, 2) + little(~before.count, 2) + before { bits.append(Int(byte), 8) }
        bits.append(0b010, 3)
        bits.append(Int((0x30 + byte).reversedBits), 8)
        for _ in 0..<(times + 256) / 258 { bits.append(0b0_0000_1010_0011, 13) }
        bits.append(0, 7)
        bits.append(1, 3)
        let after = Array(after)
        return bits.bytes + little(after.count, 2) + little(~after.count, 2) + after
    }

    private static func adler32(_ bytes: [UInt8]) -> Int {
        var (low, high) = (1, 0)
        for byte in bytes {
            low = (low + Int(byte)) % 65521
            high = (high + low) % 65521
        }
        return high << 16 | low
    }
}

/// Packs numbers into bytes, the lowest bit first.
struct BitWriter {
    private var written: [UInt8] = []
    private var pending = 0
    private var count = 0

    /// All bits, with the last byte padded with zeros.
    var bytes: [UInt8] { count == 0 ? written : written + [UInt8(pending)] }

    mutating func append(_ number: Int, _ bits: Int) {
        pending |= number << count
        count += bits
        while count >= 8 {
            written.append(UInt8(pending & 255))
            pending >>= 8
            count -= 8
        }
    }
}

extension UInt8 {
    fileprivate var reversedBits: UInt8 {
        (0..<8).reduce(0) { $0 | (self >> $1 & 1) << (7 - $1) }
    }
}
