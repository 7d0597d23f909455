/// Which end of a number comes first.
enum ByteOrder {
    case big, little
}

extension [UInt8] {
    /// The lowest `count` bytes of a number.
    static func number(_ number: Int, _ count: Int, _ order: ByteOrder) -> [UInt8] {
        let bytes = (0..<count).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
        return order == .little ? bytes : bytes.reversed()
    }

    /// These bytes with others in the place of some.
    func with(_ bytes: [UInt8], at place: Int) -> [UInt8] {
        var copy = self
        copy.replaceSubrange(place..<place + bytes.count, with: bytes)
        return copy
    }

    /// All but the last bytes.
    func cut(_ count: Int) -> [UInt8] { Array(dropLast(count)) }

    /// The first bytes.
    func first(_ count: Int) -> [UInt8] { Array(prefix(count)) }

    /// The part of all bytes that comes first.
    func share(_ share: Double) -> [UInt8] { first(Int(Double(count) * share)) }

    /// Where a text begins.
    func place(of text: String) -> Int {
        let wanted = Array(text.utf8)
        return indices.first { self[$0...].starts(with: wanted) }!
    }
}

func big(_ number: Int, _ count: Int) -> [UInt8] { .number(number, count, .big) }

func little(_ number: Int, _ count: Int) -> [UInt8] { .number(number, count, .little) }

func text(_ text: String) -> [UInt8] { Array(text.utf8) }

func zeros(_ count: Int) -> [UInt8] { [UInt8](repeating: 0, count: count) }
