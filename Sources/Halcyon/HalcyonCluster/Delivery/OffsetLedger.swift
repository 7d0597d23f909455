import Kafka
import Threads

/// Which jobs of which partitions are taken and ended, and so what may be committed and how much more may be taken.
///
/// A pure bookkeeper: it neither commits nor grants, it says what there is to commit and to grant.
struct OffsetLedger {
    private struct Partition {
        var watermark: Watermark?
        /// Differs for each time the partition was assigned, so that what was taken before counts no more.
        let generation: Int
        var committed: Int64 = -1
        /// Taken and neither ended nor handed back.
        var working = 0
        /// Ended or handed back since the last grant.
        var returned = 0
    }

    /// Names a job that was taken.
    struct Entry: Hashable, Sendable {
        let partition: TopicPartition
        let offset: Int64
        fileprivate let generation: Int
    }

    private var partitions: [TopicPartition: Partition] = [:]
    private var generations = 0
    private let window: Int

    /// - Parameter window: how many jobs of a partition may be under way at once.
    init(window: Int) {
        self.window = window
    }

    /// Jobs of these partitions (nil: of any) taken and neither ended nor handed back.
    func working(in partitions: [TopicPartition]?) -> Int {
        (partitions ?? Array(self.partitions.keys)).reduce(0) { $0 + (self.partitions[$1]?.working ?? 0) }
    }

    mutating func assign(_ partition: TopicPartition) {
        generations += 1
        partitions[partition] = Partition(generation: generations)
    }

    mutating func revoke(_ partition: TopicPartition) {
        partitions[partition] = nil
    }

    mutating func revokeAll() {
        partitions = [:]
    }

    /// nil for a record of a partition that is not assigned, or one that was taken before.
    mutating func take(_ offset: Int64, of partition: TopicPartition) -> Entry? {
        guard var state = partitions[partition] else { return nil }
        var watermark = state.watermark ?? Watermark(startingAt: offset)
        guard watermark.take(offset) else { return nil }
        if state.watermark == nil { state.committed = offset }
        state.watermark = watermark
        state.working += 1
        partitions[partition] = state
        return Entry(partition: partition, offset: offset, generation: state.generation)
    }

    /// Whether the job's partition is still the one it was taken from.
    func isCurrent(_ entry: Entry) -> Bool { partitions[entry.partition]?.generation == entry.generation }

    /// The job has ended: its offset may be passed.
    /// - Returns: how much credit to grant the partition now; granting goes in parcels of a quarter of the window.
    mutating func end(_ entry: Entry) -> Int {
        guard isCurrent(entry) else { return 0 }
        _ = partitions[entry.partition]?.watermark?.end(entry.offset)
        return giveBack(entry)
    }

    /// The job will not be done here: its offset stays, and whoever gets the partition next takes it again.
    mutating func handBack(_ entry: Entry) {
        guard isCurrent(entry) else { return }
        partitions[entry.partition]?.working -= 1
    }

    private mutating func giveBack(_ entry: Entry) -> Int {
        guard var state = partitions[entry.partition] else { return 0 }
        defer { partitions[entry.partition] = state }
        state.working -= 1
        state.returned += 1
        guard state.returned * 4 >= window || state.working == 0 else { return 0 }
        defer { state.returned = 0 }
        return state.returned
    }

    /// What may be committed and is not yet.
    func uncommitted() -> [TopicPartition: GroupOffset] {
        partitions.compactMapValues { state in
            guard let base = state.watermark?.base, base > state.committed else { return nil }
            return GroupOffset(base)
        }
    }

    /// The brokers have it.
    mutating func committed(_ offsets: [TopicPartition: GroupOffset]) {
        for (partition, offset) in offsets {
            guard let state = partitions[partition], state.committed < offset.offset else { continue }
            partitions[partition]?.committed = offset.offset
        }
    }
}
