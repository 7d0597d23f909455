import Digests

/// How far a reader of a topic has come: for each partition the offset that it reads next. A pure value.
///
/// Its text comes back to any gateway: of events it stands behind `id:`, and comes in `Last-Event-ID` (HTML Living Standard, 9.2); of dead letters it
/// is where the next page begins. It names all partitions, for what is read is one and they are many. `1.` and, in base64url, the offsets as variable-length integers in the order of the
/// partitions, and behind them four bytes of their SHA-256, so that what was cut or made up is known.
struct TopicCursor: Hashable {
    /// The offset that is read next, by partition.
    private(set) var next: [Int64]

    private static let version = "1."
    private static let checkSize = 4
    /// More partitions than any topic of events should have: what names more is none.
    private static let mostPartitions = 10_000

    /// At these offsets.
    init(_ next: [Int64] = []) { self.next = next }

    /// At these offsets by partition.
    init(_ offsets: [Int32: Int64]) {
        next = []
        for (partition, offset) in offsets { move(partition, to: offset) }
    }

    /// The offsets by partition.
    var offsets: [Int32: Int64] {
        Dictionary(uniqueKeysWithValues: next.enumerated().map { (Int32($0.offset), $0.element) })
    }

    /// Its text read back; nil for what is none.
    init?(_ text: String) {
        guard text.hasPrefix(Self.version) else { return nil }
        let body = text.dropFirst(Self.version.count).map { $0 == "-" ? "+" : $0 == "_" ? "/" : $0 }
        let padded = String(body) + String(repeating: "=", count: (4 - body.count % 4) % 4)
        guard let bytes = Base64.decode(padded), bytes.count > Self.checkSize else { return nil }
        let (numbers, check) = (bytes.dropLast(Self.checkSize), bytes.suffix(Self.checkSize))
        guard SHA256.hash(Array(numbers)).bytes.prefix(Self.checkSize).elementsEqual(check) else { return nil }
        next = []
        var (value, shift): (UInt64, UInt64) = (0, 0)
        for byte in numbers {
            guard shift < 63, next.count < Self.mostPartitions else { return nil }
            value |= UInt64(byte & 0x7f) << shift
            shift += 7
            if byte & 0x80 == 0 {
                guard value <= UInt64(Int64.max) else { return nil }
                next.append(Int64(value))
                (value, shift) = (0, 0)
            }
        }
        guard shift == 0 else { return nil }
    }

    /// What is sent.
    var text: String {
        var bytes: [UInt8] = []
        for offset in next {
            var rest = UInt64(max(0, offset))
            while rest >= 0x80 {
                bytes.append(UInt8(rest & 0x7f) | 0x80)
                rest >>= 7
            }
            bytes.append(UInt8(rest))
        }
        bytes += SHA256.hash(bytes).bytes.prefix(Self.checkSize)
        let base64 = Base64.encode(bytes).filter { $0 != "=" }.map { $0 == "+" ? "-" : $0 == "/" ? "_" : $0 }
        return Self.version + String(base64)
    }

    /// Goes past a record. Partitions that came later begin at 0.
    mutating func pass(_ partition: Int32, _ offset: Int64) {
        let index = Int(partition)
        if index >= next.count { next += Array(repeating: 0, count: index + 1 - next.count) }
        next[index] = max(next[index], offset + 1)
    }

    /// Goes to an offset of a partition, forwards or backwards.
    mutating func move(_ partition: Int32, to offset: Int64) {
        pass(partition, offset - 1)
        next[Int(partition)] = offset
    }

    /// Goes to wherever the other one is further.
    mutating func merge(_ other: TopicCursor) {
        for (index, offset) in other.next.enumerated() where offset > self[Int32(index)] {
            move(Int32(index), to: offset)
        }
    }

    /// The offset that is read next of a partition.
    subscript(partition: Int32) -> Int64 { Int(partition) < next.count ? next[Int(partition)] : 0 }

    /// Whether a record is yet to come for its reader.
    func isBefore(_ partition: Int32, _ offset: Int64) -> Bool { offset >= self[partition] }

    /// Whether it has come at least as far as the other one, in every partition.
    func hasReached(_ other: TopicCursor) -> Bool {
        other.next.enumerated().allSatisfy { self[Int32($0.offset)] >= $0.element }
    }
}
