import Kafka
import Telemetry
import Threads

/// Takes job records from the lanes, as many of each partition as its window has room for, and commits what is done.
///
/// At least once: an offset is committed when the job at it and all before it have ended. Jobs of a partition end in any order.
public final class JobConsumer: ConsumerHandler {
    /// How records are taken and offsets committed.
    public struct Options: Sendable {
        /// Jobs of one partition under way at once.
        public var window = 256
        /// How often offsets are committed.
        public var commitInterval = Duration.milliseconds(250)
        /// How long a partition that is taken away may wait for the jobs that have begun. The whole group waits meanwhile.
        public var revocationPatience = Duration.seconds(10)
        /// The defaults.
        public init() {}
    }

    private struct State {
        var ledger: OffsetLedger
        var isDraining = false
        var wasAssigned = false
    }

    private let options: Options
    private let log: Log
    private let state: Lock<State>
    private let consumer = Lock<Consumer?>(nil)
    private let committer = Lock<Task<Void, Never>?>(nil)
    private let take: @Sendable (TakenRecord) -> Void

    /// - Parameter take: called for each record on the consumer's thread; it must not block, and every record it is given must be
    ///   ended or handed back.
    public init(options: Options = Options(), log: Log, take: @escaping @Sendable (TakenRecord) -> Void) {
        self.options = options
        self.log = log
        self.take = take
        state = Lock(State(ledger: OffsetLedger(window: options.window)))
    }

    // MARK: Life

    /// Joins the group and begins to take records.
    /// - Throws: ``KafkaError`` that names a property that was refused.
    public func start(
        topics: Topics, properties: [String: String], events: ClientEvents
    ) async throws(KafkaError) {
        let started = try await Consumer.start(
            topics: topics.lanes, properties: properties, handler: self, events: events)
        consumer.withLock { $0 = started }
        let interval = options.commitInterval
        // Until it is drained the consumer keeps itself.
        let task = Task {
            while !Task.isCancelled {
                try? await Task.sleep(for: interval)
                await commit()
            }
        }
        committer.withLock { $0 = task }
    }

    /// Takes no more, waits until what is worked on has ended or been handed back, at most for `grace`, commits, and leaves the
    /// group.
    /// - Returns: how many jobs were still worked on when the grace was over; they will be redelivered.
    public func drain(grace: Duration) async -> Int {
        state.withLock { state in
            state.isDraining = true
            state.ledger.close(nil)
        }
        await idle(nil, for: grace)
        committer.withLock { $0 }?.cancel()
        await commit()
        let left = working
        // What is left must not hold up leaving.
        state.withLock { $0.ledger.revokeAll() }
        await consumer.withLock { $0 }?.close()
        consumer.withLock { $0 = nil }
        return left
    }

    /// Waits until the group has assigned this consumer its share, be it empty, for the first time.
    public func assignedOnce() async {
        while !state.withLock({ $0.wasAssigned }) {
            try? await Task.sleep(for: .milliseconds(10))
        }
    }

    /// Jobs under way.
    public var working: Int { state.withLock { $0.ledger.working(in: nil) } }

    // MARK: Records

    func begin(_ entry: OffsetLedger.Entry) -> Bool { state.withLock { $0.ledger.begin(entry) } }

    func end(_ entry: OffsetLedger.Entry) {
        let credit = state.withLock { $0.ledger.end(entry) }
        if credit > 0 { consumer.withLock { $0 }?.grant(credit, to: entry.partition) }
    }

    func handBack(_ entry: OffsetLedger.Entry) {
        state.withLock { $0.ledger.handBack(entry) }
    }

    private func commit() async {
        guard let consumer = consumer.withLock({ $0 }) else { return }
        let offsets = state.withLock { $0.ledger.uncommitted() }
        if offsets.isEmpty { return }
        do throws(KafkaError) {
            try await consumer.commit(offsets)
            state.withLock { $0.ledger.committed(offsets) }
        } catch {
            // It stays uncommitted and is tried again; if the partition is gone, its next owner does the jobs again.
            log.warning("offsets not committed", ["error": "\(error)"])
        }
    }

    /// Waits until nothing of these partitions (nil: of any) is worked on, at most for `limit`.
    private func idle(_ partitions: [TopicPartition]?, for limit: Duration) async {
        // It happens once per rebalance and once at the end: looking again is simpler than being told.
        let end = ContinuousClock.now + limit
        while state.withLock({ $0.ledger.working(in: partitions) }) > 0, .now < end {
            try? await Task.sleep(for: .milliseconds(10))
        }
    }

    // MARK: ConsumerHandler

    /// Begins to take records of these partitions.
    public func assigned(_ partitions: [TopicPartition], to consumer: Consumer) {
        state.withLock { state in
            for partition in partitions { state.ledger.assign(partition) }
            state.wasAssigned = true
        }
        for partition in partitions { consumer.grant(options.window, to: partition) }
        if !partitions.isEmpty { log.info("partitions assigned", ["partitions": "\(partitions.sorted())"]) }
    }

    /// Takes records into the ledger and passes them on.
    public func received(_ records: [ConsumedRecord], from consumer: Consumer) {
        for record in records {
            let entry = state.withLock { state in
                state.isDraining ? nil : state.ledger.take(record.offset, of: record.topicPartition)
            }
            if let entry { take(TakenRecord(record: record, entry: entry, consumer: self)) }
        }
    }

    /// Lets jobs of these partitions end for a while, commits them and forgets the partitions.
    public func revoked(_ partitions: [TopicPartition], lost: Bool, from consumer: Consumer) async {
        if !lost {
            state.withLock { $0.ledger.close(partitions) }
            await idle(partitions, for: options.revocationPatience)
            await commit()
        }
        state.withLock { state in for partition in partitions { state.ledger.revoke(partition) } }
        if !partitions.isEmpty {
            log.info("partitions revoked", ["partitions": "\(partitions.sorted())", "lost": lost])
        }
    }

    /// Logs it.
    public func failed(_ error: KafkaError, in consumer: Consumer) {
        log.error("consuming", ["error": "\(error)"])
    }
}
