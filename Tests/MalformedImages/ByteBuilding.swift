/// The order of the bytes of a number.
enum ByteOrder {
    case big, little
}

extension [UInt8] {
    /// Returns the lowest `count` bytes of a number.
    static func number(_ number: Int, _ count: Int, _ order: ByteOrder) -> [UInt8] {
        let bytes = (0..<count).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
        return order == .little ? bytes : bytes.reversed()
    }

    /// Returns a copy with `bytes` written at an offset.
    func with(_ bytes: [UInt8], at offset: Int) -> [UInt8] {
        var copy = self
        copy.replaceSubrange(offset..<offset + bytes.count, with: bytes)
        return copy
    }

    /// Returns all but the last `count` bytes.
    func cut(_ count: Int) -> [UInt8] { Array(dropLast(count)) }

    /// Returns the first `count` bytes.
    func first(_ count: Int) -> [UInt8] { Array(prefix(count)) }

    /// Returns this fraction of the bytes, from the first one.
    func fraction(_ fraction: Double) -> [UInt8] { first(Int(Double(count) * fraction)) }

    /// Returns the offset of the first occurrence of a text.
    func offset(of text: String) -> Int {
        let wanted = Array(text.utf8)
        return indices.first { self[$0...].starts(with: wanted) }!
    }
}

func big(_ number: Int, _ count: Int) -> [UInt8] { .number(number, count, .big) }

func little(_ number: Int, _ count: Int) -> [UInt8] { .number(number, count, .little) }

func text(_ text: String) -> [UInt8] { Array(text.utf8) }

func zeros(_ count: Int) -> [UInt8] { [UInt8](repeating: 0, count: count) }
