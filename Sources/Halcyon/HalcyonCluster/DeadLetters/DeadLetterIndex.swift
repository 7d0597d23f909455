import Kafka

/// The dead letters that have not been replayed: for each partition of the topic, the next offset to read and the
/// offsets of the dead letters without a replay marker. A pure value of about 16 bytes per dead letter.
///
/// A marker follows its dead letter in the same partition. The index is therefore exact for everything that was read,
/// and reading can resume at any time.
public struct DeadLetterIndex: Sendable {
    private struct Partition {
        /// The next offset to read.
        var next: Int64
        var open: Set<Int64> = []
        /// The offset of the oldest message, as of the last lookup.
        var oldest: Int64 = 0
    }

    private var partitions: [Int32: Partition] = [:]

    /// Creates an index of a topic that has not been read yet.
    public init() {}

    /// The number of dead letters that were not replayed.
    public var count: Int { partitions.values.reduce(0) { $0 + $1.open.count } }

    /// The next offset to read, by partition.
    public var next: [Int32: Int64] { partitions.mapValues(\.next) }

    /// True if a dead letter was replayed, as far as the topic was read.
    public func isReplayed(_ id: DeadLetterID) -> Bool {
        guard let partition = partitions[id.partition], id.offset < partition.next else { return false }
        return !partition.open.contains(id.offset)
    }

    /// The first dead letter of a partition, at or after an offset, that was not replayed.
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

    /// Removes dead letters that have been deleted from the topic.
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
