import Hashing

/// The position of a reader in a topic: the next offset of each partition. A pure value.
///
/// Clients send its text back to any gateway. For events it is the `id:` of the stream, returned in `Last-Event-ID`
/// (HTML Living Standard, 9.2). For dead letters it is the position at which the next page starts. It covers all
/// partitions, because clients read the topic as one stream.
///
/// The text is `1.` followed by a base64url value: the offsets as variable-length integers in partition order, and the
/// first four bytes of their SHA-256. The checksum detects truncated and made-up cursors.
struct TopicCursor: Hashable {
    /// The next offset of each partition.
    private(set) var next: [Int64]

    private static let version = "1."
    private static let checkSize = 4
    /// An upper bound on the number of partitions. A cursor with more is invalid.
    private static let mostPartitions = 10_000

    /// Creates a cursor from the next offset of each partition, in partition order.
    init(_ next: [Int64] = []) { self.next = next }

    /// Creates a cursor from the next offsets by partition.
    init(_ offsets: [Int32: Int64]) {
        next = []
        for (partition, offset) in offsets { move(partition, to: offset) }
    }

    /// The next offsets by partition.
    var offsets: [Int32: Int64] {
        Dictionary(uniqueKeysWithValues: next.enumerated().map { (Int32($0.offset), $0.element) })
    }

    /// Parses the text of a cursor. Returns nil if it is invalid.
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

    /// The text that is sent to clients.
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

    /// Moves past a record. Partitions that were added later start at 0.
    mutating func pass(_ partition: Int32, _ offset: Int64) {
        let index = Int(partition)
        if index >= next.count { next += Array(repeating: 0, count: index + 1 - next.count) }
        next[index] = max(next[index], offset + 1)
    }

    /// Moves to an offset of a partition, forwards or backwards.
    mutating func move(_ partition: Int32, to offset: Int64) {
        pass(partition, offset - 1)
        next[Int(partition)] = offset
    }

    /// Advances each partition to the offset of the other cursor if that is greater.
    mutating func merge(_ other: TopicCursor) {
        for (index, offset) in other.next.enumerated() where offset > self[Int32(index)] {
            move(Int32(index), to: offset)
        }
    }

    /// The next offset of a partition.
    subscript(partition: Int32) -> Int64 { Int(partition) < next.count ? next[Int(partition)] : 0 }

    /// True if the reader has not received the record yet.
    func isBefore(_ partition: Int32, _ offset: Int64) -> Bool { offset >= self[partition] }

    /// True if the cursor is at or past the other one in every partition.
    func hasReached(_ other: TopicCursor) -> Bool {
        other.next.enumerated().allSatisfy { self[Int32($0.offset)] >= $0.element }
    }
}
