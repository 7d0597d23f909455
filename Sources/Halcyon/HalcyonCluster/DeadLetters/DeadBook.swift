import Kafka

/// Which letters are still to be dealt with: for each partition of the topic how far it was read, and the letters there that no mark names. A
/// pure value, of about 16 bytes a letter.
///
/// A mark stands behind its letter in the same partition. So what is open is known for all that was read, and reading can go on where it was.
public struct DeadBook: Sendable {
    private struct Partition {
        /// The offset that is read next.
        var next: Int64
        var open: Set<Int64> = []
        /// Of the oldest message, when that was looked up.
        var oldest: Int64 = 0
    }

    private var partitions: [Int32: Partition] = [:]

    /// Of a topic of which nothing was read yet.
    public init() {}

    /// Letters that were not replayed.
    public var count: Int { partitions.values.reduce(0) { $0 + $1.open.count } }

    /// The offset that is read next, by partition.
    public var next: [Int32: Int64] { partitions.mapValues(\.next) }

    /// Whether a letter was replayed, as far as was read.
    public func isReplayed(_ id: LetterID) -> Bool {
        guard let partition = partitions[id.partition], id.offset < partition.next else { return false }
        return !partition.open.contains(id.offset)
    }

    /// The first open letter of a partition that is not before an offset.
    func firstOpen(of partition: Int32, from offset: Int64) -> Int64? {
        partitions[partition]?.open.lazy.filter { $0 >= offset }.min()
    }

    // MARK: Reading

    mutating func note(_ record: ConsumedRecord) {
        if let mark = Replay.mark(in: record) {
            partitions[mark.partition]?.open.remove(mark.offset)
        } else {
            partitions[record.partition, default: Partition(next: 0)].open.insert(record.offset)
        }
        move(record.partition, to: record.offset + 1)
    }

    mutating func move(_ partition: Int32, to offset: Int64) {
        partitions[partition, default: Partition(next: 0)].next = offset
    }

    /// Forgets letters that are not there any more.
    public mutating func forget(before oldest: [Int32: Int64]) {
        for (number, offset) in oldest {
            guard var partition = partitions.removeValue(forKey: number) else { continue }
            if partition.oldest < offset {
                partition.oldest = offset
                partition.open = partition.open.filter { $0 >= offset }
            }
            partitions[number] = partition
        }
    }
}
