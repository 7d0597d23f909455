import Kafka

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
        /// Ended since the last grant.
        var returned = 0
        /// The highest offset whose job has begun or ended.
        var highestBegun: Int64 = -1
        /// Nothing new is to be begun: the partition is about to go.
        var isClosing = false
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

    /// These partitions (nil: all) are about to go: from now on only what must be begun is begun.
    mutating func close(_ closing: [TopicPartition]?) {
        for partition in closing ?? Array(partitions.keys) { partitions[partition]?.isClosing = true }
    }

    /// Asks whether the job may be begun; otherwise it is to be handed back.
    ///
    /// In a partition that is about to go, jobs behind all that has begun stay for the next owner. Those before are done here: the
    /// committed offset could not pass them, and what has ended behind them would be done, and told, again.
    mutating func begin(_ entry: Entry) -> Bool {
        guard isCurrent(entry), let state = partitions[entry.partition] else { return false }
        if state.isClosing, entry.offset > state.highestBegun { return false }
        partitions[entry.partition]?.highestBegun = max(state.highestBegun, entry.offset)
        return true
    }

    private func isCurrent(_ entry: Entry) -> Bool { partitions[entry.partition]?.generation == entry.generation }

    /// The job has ended: its offset may be passed.
    /// - Returns: how much credit to grant the partition now; granting goes in parcels of a quarter of the window.
    mutating func end(_ entry: Entry) -> Int {
        guard isCurrent(entry), var state = partitions[entry.partition] else { return 0 }
        defer { partitions[entry.partition] = state }
        _ = state.watermark?.end(entry.offset)
        state.highestBegun = max(state.highestBegun, entry.offset)
        state.working -= 1
        state.returned += 1
        guard !state.isClosing, state.returned * 4 >= window || state.working == 0 else { return 0 }
        defer { state.returned = 0 }
        return state.returned
    }

    /// The job will not be done here: its offset stays, and whoever gets the partition next takes it again.
    mutating func handBack(_ entry: Entry) {
        guard isCurrent(entry) else { return }
        partitions[entry.partition]?.working -= 1
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
