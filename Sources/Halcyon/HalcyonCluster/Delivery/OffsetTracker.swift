import Kafka

/// The state of all jobs in all assigned partitions. It computes the offsets to commit, the credit to grant, and the
/// callbacks to call when a partition is revoked.
///
/// A pure state machine: it returns commits, grants and callbacks, and its owner performs them.
struct OffsetTracker {
    /// Identifies one assignment of a partition.
    struct Assignment: Hashable, Sendable {
        let partition: TopicPartition
        /// The number of the assignment, which no other one has.
        fileprivate let generation: Int

        static func == (first: Self, second: Self) -> Bool { first.generation == second.generation }

        func hash(into hasher: inout Hasher) { hasher.combine(generation) }
    }

    /// Identifies a job that was received.
    struct Entry: Hashable, Sendable {
        let offset: Int64
        let assignment: Assignment
        var partition: TopicPartition { assignment.partition }
    }

    /// The decision about an incoming record.
    enum Acceptance {
        /// The record must be processed.
        case taken(Entry)
        /// An earlier owner of the partition completed the record. The credit is to be granted.
        case hasEnded(credit: Credit)
        /// The record lies below the group's commit, from which the partition is to be read. The credit is to be
        /// granted.
        case precedesCommit(_ start: Int64, credit: Credit)
        /// The partition is not assigned to this consumer, or the record was received before.
        case notOurs
    }

    private var partitions: [TopicPartition: PartitionTracker] = [:]
    private var generations = 0
    private var window: Credit
    private var metadataLimit: Int

    /// Creates a tracker without partitions.
    /// - Parameters:
    ///   - window: the limit of records in flight per partition.
    ///   - metadataLimit: the maximum number of characters of commit metadata.
    init(window: Credit, metadataLimit: Int) {
        self.window = window
        self.metadataLimit = metadataLimit
    }

    // MARK: Partitions

    /// The number of assigned partitions.
    var partitionCount: Int { partitions.count }

    /// Adds an assigned partition. Its committed offset must be read next; no record is received before
    /// ``open(_:committed:map:)``.
    mutating func assign(_ partition: TopicPartition) -> Assignment {
        generations += 1
        partitions[partition] = PartitionTracker(generation: generations)
        return Assignment(partition: partition, generation: generations)
    }

    /// True if the partition has not been revoked since.
    func isCurrent(_ assignment: Assignment) -> Bool {
        partitions[assignment.partition]?.generation == assignment.generation
    }

    /// True if the job's partition has not been revoked since the job was received.
    func isCurrent(_ entry: Entry) -> Bool { isCurrent(entry.assignment) }

    /// Opens a partition whose committed offset is known. Records may then be received.
    /// - Parameter map: the completed offsets beyond the committed one; nil if unknown.
    /// - Returns: the credit to grant; none if the partition has been revoked meanwhile.
    mutating func open(_ assignment: Assignment, committed: GroupOffset?, map: CompletedRanges?) -> Credit {
        guard isCurrent(assignment) else { return .none }
        partitions[assignment.partition]?.open(committed, map)
        return window
    }

    /// Enlarges the window.
    /// - Returns: the additional credit to grant to each open partition.
    mutating func widen(toRecords records: Int) -> [TopicPartition: Credit] {
        let more = Credit(records: max(0, records - window.records), bytes: 0)
        window.records += more.records
        return partitions.filter { $0.value.isOpen }.mapValues { _ in more }
    }

    /// Closes partitions (nil for all) that are about to be revoked. No record of them is received or begun any more.
    /// - Returns: the callbacks of jobs that have not begun.
    mutating func close(_ closing: [TopicPartition]?) -> [@Sendable () -> Void] {
        (closing ?? Array(partitions.keys)).flatMap { partitions[$0]?.close() ?? [] }
    }

    mutating func revoke(_ partition: TopicPartition) {
        partitions[partition] = nil
    }

    mutating func revokeAll() {
        partitions = [:]
    }

    /// The number of jobs of these partitions (nil for all) that have begun and not ended.
    func begun(in partitions: [TopicPartition]?) -> Int {
        (partitions ?? Array(self.partitions.keys)).reduce(0) { $0 + (self.partitions[$1]?.begun ?? 0) }
    }

    // MARK: Jobs

    /// Receives a record.
    /// - Parameter logEnd: the high watermark of the partition; -1 if it is unknown. It is read only if the first
    ///   record lies below the commit.
    mutating func receive(
        _ offset: Int64, bytes: Int, of partition: TopicPartition, logEnd: @autoclosure () -> Int64 = -1,
        at now: ContinuousClock.Instant = .now
    ) -> Acceptance {
        guard let generation = partitions[partition]?.generation,
            let taking = partitions[partition]?.receive(offset, bytes: bytes, logEnd: logEnd, at: now)
        else { return .notOurs }
        switch taking {
        case .taken:
            return .taken(Entry(offset: offset, assignment: Assignment(partition: partition, generation: generation)))
        case .hasEnded:
            return .hasEnded(credit: credit(of: partition))
        case .precedesStart:
            return .precedesCommit(partitions[partition]?.start ?? offset, credit: credit(of: partition))
        case .cameBefore: return .notOurs
        }
    }

    /// Records that all records of a partition below this offset were received.
    mutating func reachEnd(_ offset: Int64, of partition: TopicPartition) {
        partitions[partition]?.reachEnd(offset)
    }

    /// Begins a job. Returns true if it may be processed or has begun before, and false if it must be returned to the
    /// queue.
    mutating func begin(_ entry: Entry) -> Bool {
        isCurrent(entry) && partitions[entry.partition]?.begin(entry.offset) == true
    }

    /// Resets a job to the state before it began.
    /// - Parameter due: The time until which the job waits; nil if it does not.
    /// - Returns: false if it must be returned to the queue now.
    mutating func release(_ entry: Entry, until due: ContinuousClock.Instant? = nil) -> Bool {
        isCurrent(entry) && partitions[entry.partition]?.release(entry.offset, until: due) == true
    }

    /// Sets the callback for the case that the job must be returned to the queue before it has begun.
    /// - Returns: true if that is the case already.
    mutating func onRevocation(_ entry: Entry, _ body: @escaping @Sendable () -> Void) -> Bool {
        !isCurrent(entry) || partitions[entry.partition]?.onRevocation(entry.offset, body) == true
    }

    /// Ends a job. Its offset may be committed.
    /// - Returns: the credit to grant to the partition now.
    mutating func end(_ entry: Entry, at now: ContinuousClock.Instant = .now) -> Credit {
        guard isCurrent(entry) else { return .none }
        partitions[entry.partition]?.end(entry.offset, at: now)
        return credit(of: entry.partition)
    }

    private mutating func credit(of partition: TopicPartition) -> Credit {
        partitions[partition]?.credit(window: window, metadataLimit: metadataLimit) ?? .none
    }

    /// Removes a job that is not processed here. Its offset is not committed, and the next owner of the partition
    /// receives it again.
    mutating func returnToQueue(_ entry: Entry) {
        if isCurrent(entry) { partitions[entry.partition]?.returnToQueue(entry.offset) }
    }

    // MARK: Offsets

    /// The range from the first incomplete offset to the last one received, for each partition that has had records.
    var spans: [TopicPartition: Range<Int64>] { partitions.compactMapValues(\.span) }

    /// The time since which the offset to commit has not moved, of the partition where that is longest; nil without
    /// jobs. It is in the future if all partitions wait for jobs that are not due yet.
    /// - Parameter isExempt: True for a job that may hold back its partition.
    func heldBackSince(
        except isExempt: (_ offset: Int64, TopicPartition) -> Bool = { _, _ in false }
    ) -> ContinuousClock.Instant? {
        partitions.compactMap { partition, tracker in
            guard let since = tracker.heldSince, let lowest = tracker.span?.lowerBound, !isExempt(lowest, partition)
            else { return nil }
            return since
        }.min()
    }

    /// The offsets that can be committed and are not committed yet.
    func uncommitted() -> [TopicPartition: GroupOffset] {
        partitions.compactMapValues { $0.uncommitted(metadataLimit: metadataLimit).offset }
    }

    /// The number of completed offsets of these partitions (nil for all) that do not fit into commit metadata.
    func untracked(in partitions: [TopicPartition]?) -> Int {
        (partitions ?? Array(self.partitions.keys)).reduce(0) {
            $0 + (self.partitions[$1]?.untracked(metadataLimit: metadataLimit) ?? 0)
        }
    }

    /// Records offsets that the brokers have stored.
    mutating func committed(_ offsets: [TopicPartition: GroupOffset]) {
        for (partition, offset) in offsets { partitions[partition]?.committed(offset) }
    }

    /// The commit for a group of jobs that end together.
    struct Snapshot: Sendable {
        /// The offsets to commit, for these jobs and for everything else that is uncommitted.
        var offsets: [TopicPartition: GroupOffset] = [:]
        /// Jobs whose partition was revoked since they were received. They do not end here.
        var gone: Set<Entry> = []
        /// Jobs that must wait for earlier ones to end, because they do not fit into commit metadata.
        var untracked: Set<Entry> = []
    }

    /// Computes the commit that ends exactly these jobs and no others in flight. It changes nothing; the jobs end once
    /// it is committed.
    func snapshot(ending entries: some Sequence<Entry>) -> Snapshot {
        var snapshot = Snapshot()
        var ending: [TopicPartition: [Entry]] = [:]
        for entry in entries {
            if isCurrent(entry) {
                ending[entry.partition, default: []].append(entry)
            } else {
                snapshot.gone.insert(entry)
            }
        }
        for (partition, ledger) in partitions {
            var chosen = (ending[partition] ?? []).sorted { $0.offset < $1.offset }
            var next = ledger.uncommitted(ending: chosen.map(\.offset), metadataLimit: metadataLimit)
            if !next.tellsAll {
                let now = ledger.uncommitted(metadataLimit: metadataLimit)
                // The metadata omits the highest offsets. The lowest job always fits, because it leaves less to store.
                // If the limit was lowered, earlier completed offsets may not fit. Then no more of them are omitted,
                // and none of the jobs.
                while let last = chosen.last, !next.tellsAll,
                    now.tellsAll || next.toldEnd < now.toldEnd || next.toldEnd <= last.offset
                {
                    snapshot.untracked.insert(chosen.removeLast())
                    next = ledger.uncommitted(ending: chosen.map(\.offset), metadataLimit: metadataLimit)
                }
                // A commit that ends no job can wait until it reports as much as the stored one.
                if chosen.isEmpty, next.tellsLess { continue }
            }
            snapshot.offsets[partition] = next.offset
        }
        return snapshot
    }

    /// Lowers the metadata limit after the brokers rejected its size; 0 for no metadata.
    mutating func limitMetadata(to limit: Int) { metadataLimit = min(metadataLimit, limit) }
}
