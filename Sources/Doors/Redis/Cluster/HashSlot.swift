/// The slot of a Redis Cluster that a key lies in, one of 16384 (Redis Cluster specification, "Key distribution model").
struct HashSlot: Hashable {
    static let count = 16_384

    let number: Int

    /// Nil when there is no such slot.
    init?(number: Int) {
        guard (0..<Self.count).contains(number) else { return nil }
        self.number = number
    }

    /// The slot of a key: CRC16 of it, or of its hash tag, modulo 16384.
    ///
    /// The tag is what stands between the first `{` and the first `}` behind it, unless that is nothing.
    init(of key: RedisArgument) {
        number =
            switch key {
            case .string(let text):
                text.utf8.withContiguousStorageIfAvailable { Self.number(of: $0) }
                    ?? Array(text.utf8).withUnsafeBufferPointer { Self.number(of: $0) }
            case .bytes(let bytes): bytes.withUnsafeBufferPointer { Self.number(of: $0) }
            case .integer(let value): Array(String(value).utf8).withUnsafeBufferPointer { Self.number(of: $0) }
            }
    }

    private static func number(of key: UnsafeBufferPointer<UInt8>) -> Int {
        var hashed = key[...]
        if let open = key.firstIndex(of: UInt8(ascii: "{")) {
            let behind = key[(open + 1)...]
            if let close = behind.firstIndex(of: UInt8(ascii: "}")), close > open + 1 { hashed = key[open + 1..<close] }
        }
        return Int(CRC16.of(hashed)) % count
    }
}

/// CRC-16/XMODEM: polynomial 0x1021, from zero, nothing reflected.
enum CRC16 {
    private static let table: [UInt16] = (0..<256).map { byte in
        (0..<8).reduce(UInt16(byte) << 8) { value, _ in value & 0x8000 == 0 ? value << 1 : value << 1 ^ 0x1021 }
    }

    static func of(_ bytes: some Sequence<UInt8>) -> UInt16 {
        bytes.reduce(0) { $0 << 8 ^ table[Int($0 >> 8 ^ UInt16($1))] }
    }
}
