import Kafka

/// Which jobs of which partitions are taken, begun and ended, and so what may be committed, how much more may be taken, and who is to
/// be told when a partition goes.
///
/// A pure bookkeeper: it neither commits nor grants nor calls, it says what there is to commit, to grant and to call.
struct OffsetLedger {
    /// Names one time that a partition was assigned.
    struct Assignment: Hashable, Sendable {
        let partition: TopicPartition
        fileprivate let generation: Int
    }

    /// Names a job that was taken.
    struct Entry: Hashable, Sendable {
        let offset: Int64
        fileprivate let assignment: Assignment
        var partition: TopicPartition { assignment.partition }
    }

    /// What becomes of a record that came.
    enum Taking {
        /// It is to be done.
        case taken(Entry)
        /// Another owner of the partition has done it; so much credit is to be granted.
        case hasEnded(credit: Credit)
        /// It is not this consumer's, or came before.
        case notOurs
    }

    private var partitions: [TopicPartition: PartitionLedger] = [:]
    private var generations = 0
    private let window: Credit
    private var metadataLimit: Int

    /// - Parameters:
    ///   - window: how much of a partition may be under way at once.
    ///   - metadataLimit: characters of a commit's metadata.
    init(window: Credit, metadataLimit: Int) {
        self.window = window
        self.metadataLimit = metadataLimit
    }

    // MARK: Partitions

    /// How many this consumer has.
    var partitionCount: Int { partitions.count }

    /// The partition is this consumer's. What was committed is still to be asked for; until ``open(_:committed:map:)`` no record comes.
    mutating func assign(_ partition: TopicPartition) -> Assignment {
        generations += 1
        partitions[partition] = PartitionLedger(generation: generations)
        return Assignment(partition: partition, generation: generations)
    }

    /// Whether the partition has not gone since.
    func isCurrent(_ assignment: Assignment) -> Bool {
        partitions[assignment.partition]?.generation == assignment.generation
    }

    /// Whether the job's partition has not gone since it was taken.
    func isCurrent(_ entry: Entry) -> Bool { isCurrent(entry.assignment) }

    /// What was committed is known: records may come.
    /// - Parameter map: what has ended beyond; nil when that is not known.
    /// - Returns: how much credit to grant; none when the partition has gone meanwhile.
    mutating func open(_ assignment: Assignment, committed: GroupOffset?, map: OffsetMap?) -> Credit {
        guard isCurrent(assignment) else { return .none }
        partitions[assignment.partition]?.open(committed, map)
        return window
    }

    /// These partitions (nil: all) are about to go: from now on nothing of them is taken or begun.
    /// - Returns: what is to be called for the jobs that have not begun.
    mutating func close(_ closing: [TopicPartition]?) -> [@Sendable () -> Void] {
        (closing ?? Array(partitions.keys)).flatMap { partitions[$0]?.close() ?? [] }
    }

    mutating func revoke(_ partition: TopicPartition) {
        partitions[partition] = nil
    }

    mutating func revokeAll() {
        partitions = [:]
    }

    /// Jobs of these partitions (nil: of any) that have begun and not ended.
    func begun(in partitions: [TopicPartition]?) -> Int {
        (partitions ?? Array(self.partitions.keys)).reduce(0) { $0 + (self.partitions[$1]?.begun ?? 0) }
    }

    // MARK: Jobs

    mutating func take(
        _ offset: Int64, bytes: Int, of partition: TopicPartition, at now: ContinuousClock.Instant = .now
    ) -> Taking {
        guard let generation = partitions[partition]?.generation,
            let taking = partitions[partition]?.take(offset, bytes: bytes, at: now)
        else { return .notOurs }
        switch taking {
        case .taken:
            return .taken(Entry(offset: offset, assignment: Assignment(partition: partition, generation: generation)))
        case .hasEnded:
            return .hasEnded(credit: credit(of: partition))
        case .cameBefore: return .notOurs
        }
    }

    /// All records of a partition have come that there are below this offset.
    mutating func reachEnd(_ offset: Int64, of partition: TopicPartition) {
        partitions[partition]?.reachEnd(offset)
    }

    /// Asks whether the job may be begun, or has been; otherwise it is to be handed back.
    mutating func begin(_ entry: Entry) -> Bool {
        isCurrent(entry) && partitions[entry.partition]?.begin(entry.offset) == true
    }

    /// The job waits, as if it had not begun; false when it is to be handed back now.
    mutating func rest(_ entry: Entry) -> Bool {
        isCurrent(entry) && partitions[entry.partition]?.rest(entry.offset) == true
    }

    /// Says what to call when the job is to be handed back before it has begun.
    /// - Returns: whether that is so already.
    mutating func onRecall(_ entry: Entry, _ body: @escaping @Sendable () -> Void) -> Bool {
        !isCurrent(entry) || partitions[entry.partition]?.onRecall(entry.offset, body) == true
    }

    /// The job has ended: its offset may be passed.
    /// - Returns: how much credit to grant the partition now.
    mutating func end(_ entry: Entry, at now: ContinuousClock.Instant = .now) -> Credit {
        guard isCurrent(entry) else { return .none }
        partitions[entry.partition]?.end(entry.offset, at: now)
        return credit(of: entry.partition)
    }

    private mutating func credit(of partition: TopicPartition) -> Credit {
        partitions[partition]?.credit(window: window, metadataLimit: metadataLimit) ?? .none
    }

    /// The job will not be done here: its offset stays, and whoever gets the partition next takes it again.
    mutating func handBack(_ entry: Entry) {
        if isCurrent(entry) { partitions[entry.partition]?.handBack(entry.offset) }
    }

    // MARK: Offsets

    /// The most jobs that any partition has under way.
    var mostUnderWay: Int { partitions.values.lazy.map(\.underWay).max() ?? 0 }

    /// From the first offset that has not ended to the last that was taken, of each partition that has had records.
    var spans: [TopicPartition: Range<Int64>] { partitions.compactMapValues(\.span) }

    /// Since when the committed offset of a partition that has jobs has not been able to move, of the one where that is longest; nil without jobs.
    var heldSince: ContinuousClock.Instant? { partitions.values.lazy.compactMap(\.heldSince).min() }

    /// What may be committed and is not yet.
    func uncommitted() -> [TopicPartition: GroupOffset] {
        partitions.compactMapValues { $0.uncommitted(metadataLimit: metadataLimit).offset }
    }

    /// Offsets of these partitions (nil: of all) that have ended and of which a commit has no room to tell.
    func untold(in partitions: [TopicPartition]?) -> Int {
        (partitions ?? Array(self.partitions.keys)).reduce(0) {
            $0 + (self.partitions[$1]?.untold(metadataLimit: metadataLimit) ?? 0)
        }
    }

    /// The brokers have it.
    mutating func committed(_ offsets: [TopicPartition: GroupOffset]) {
        for (partition, offset) in offsets { partitions[partition]?.committed(offset) }
    }

    /// What is to be committed when jobs end together.
    struct Snapshot: Sendable {
        /// What to commit: for the jobs that end, and for whatever else is uncommitted.
        var offsets: [TopicPartition: GroupOffset] = [:]
        /// Jobs whose partition has gone since they were taken: they do not end here.
        var gone: Set<Entry> = []
        /// Jobs that must wait until others before them have ended: a commit has no room to tell of them.
        var untold: Set<Entry> = []
    }

    /// What to commit so that exactly these jobs end, and no others that are under way. It changes nothing: they end when it is committed.
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
            // The note leaves out what is highest. The lowest job always finds room, for its end leaves less to tell. (Where there was too
            // little for what had ended before, because the limit was lowered, at least no more is left out.)
            while !next.tellsAll, let last = chosen.popLast() {
                let now = ledger.uncommitted(metadataLimit: metadataLimit)
                if !now.tellsAll, next.toldEnd >= now.toldEnd { break }
                snapshot.untold.insert(last)
                next = ledger.uncommitted(ending: chosen.map(\.offset), metadataLimit: metadataLimit)
            }
            snapshot.offsets[partition] = next.offset
        }
        return snapshot
    }

    /// The brokers take no metadata of such length: from now on it is shorter. 0 for none.
    mutating func limitMetadata(to limit: Int) { metadataLimit = min(metadataLimit, limit) }
}
