import Kafka
import Telemetry
import Threads

/// Takes records that are jobs, or something else to be done once each, as many of each partition as its window has room for, and has
/// committed what is done.
///
/// An offset is committed when the job at it and all before it have ended. Jobs of a partition end in any order; what has
/// ended beyond the committed offset is told in its metadata, and not done again by the partition's next owner.
public final class JobConsumer: Sendable {
    /// How records are taken and offsets committed.
    public struct Options: Sendable {
        /// Jobs of one partition under way at once.
        public var window = 256
        /// What their messages may weigh together, in bytes; one that weighs more comes alone.
        public var windowBytes = 8 << 20
        /// Characters of a commit's metadata, which tell what has ended beyond the offset; 0 for none. The brokers' own limit is
        /// `offset.metadata.max.bytes`.
        public var metadataLimit = 4096
        /// How often offsets are committed.
        public var commitInterval = Duration.milliseconds(250)
        /// How long a partition that is taken away may wait for the jobs that have begun. The whole group waits meanwhile.
        public var revocationPatience = Duration.seconds(1)
        /// The defaults.
        public init() {}
    }

    struct State {
        var ledger: OffsetLedger
        var isDraining = false
        var ended = 0
        var handedBack = 0
        /// Each is opened when no job of its partitions (nil: of any) that has begun is left.
        var idleGates: [(partitions: [TopicPartition]?, gate: Gate)] = []

        mutating func takeIdleGates() -> [Gate] {
            if idleGates.isEmpty { return [] }
            let idle = idleGates.filter { ledger.begun(in: $0.partitions) == 0 }.map(\.gate)
            idleGates.removeAll { entry in entry.gate.isOpen || idle.contains { $0 === entry.gate } }
            return idle
        }
    }

    let options: Options
    let log: Log
    let things: String
    let metrics: DeliveryMetrics
    let state: Lock<State>
    let consumer = Lock<Consumer?>(nil)
    private let commits: any OffsetCommits
    private let committer = Lock<Task<Void, Never>?>(nil)
    /// Open when the group has assigned this consumer its share for the first time.
    let assignment = Gate()
    let onEnd: @Sendable (KafkaError) -> Void
    let take: @Sendable ([TakenRecord]) -> Void

    /// - Parameters:
    ///   - things: what the records are, in the names of metrics.
    ///   - commits: who commits what has ended.
    ///   - onEnd: called when the group will have nothing more to do with this consumer, as when a newer one has its `group.instance.id`.
    ///   - take: called on the consumer's thread with the records that came together; it must not block, and every
    ///     record it is given must be ended or handed back.
    public init(
        options: Options = Options(), of things: String = "jobs", commits: any OffsetCommits = DirectCommits(),
        log: Log, metrics: Metrics,
        onEnd: @escaping @Sendable (KafkaError) -> Void = { _ in }, take: @escaping @Sendable ([TakenRecord]) -> Void
    ) {
        self.options = options
        self.commits = commits
        self.onEnd = onEnd
        self.log = log
        self.things = things
        self.metrics = DeliveryMetrics(metrics, of: things)
        self.take = take
        state = Lock(
            State(
                ledger: OffsetLedger(
                    window: Credit(records: options.window, bytes: options.windowBytes),
                    metadataLimit: options.metadataLimit)))
        addReadings(to: metrics)
    }

    // MARK: Life

    /// Joins the group and begins to take records.
    /// - Throws: ``KafkaError`` that names a property that was refused.
    public func start(
        topics: [String], properties: [String: String], events: ClientEvents
    ) async throws(KafkaError) {
        let started = try await Consumer.start(
            topics: topics, properties: properties, handler: self, events: events)
        consumer.withLock { $0 = started }
        let interval = options.commitInterval
        // Until it is drained the consumer keeps itself.
        let task = Task { [commits] in
            while !Task.isCancelled {
                await Task.sleepUnlessCancelled(for: interval)
                await commits.commit(self)
            }
        }
        committer.withLock { $0 = task }
    }

    /// Takes and begins no more, waits until what has begun has ended, at most for `grace`, commits, and leaves the group.
    /// - Returns: how many jobs had begun and not ended when the grace was over; they will be redelivered.
    public func drain(grace: Duration) async -> Int {
        let start = ContinuousClock.now
        let before = state.withLock { state in
            state.isDraining = true
            return (ended: state.ended, handedBack: state.handedBack)
        }
        await close(nil, within: grace)
        committer.withLock { $0 }?.cancel()
        let (left, drained) = state.withLock { state in
            let left = state.ledger.begun(in: nil)
            return (
                left,
                Drained(
                    took: start.duration(to: .now), ended: state.ended - before.ended,
                    handedBack: state.handedBack - before.handedBack, cutShort: left)
            )
        }
        drained.tell(things, log, metrics)
        // What is left must not hold up leaving.
        update { $0.ledger.revokeAll() }
        tellPartitions()
        await consumer.withLock { $0 }?.close()
        consumer.withLock { $0 = nil }
        return left
    }

    /// Whether the group has assigned this consumer its share, be it empty, and it takes records.
    public var isServing: Bool { assignment.isOpen && !state.withLock { $0.isDraining } }

    func tellPartitions() { metrics.partitions.set(Double(state.withLock { $0.ledger.partitionCount })) }

    /// Waits until the group has assigned this consumer its share, be it empty, for the first time, or the task is
    /// cancelled.
    public func assignedOnce() async { await assignment.wait() }

    /// Makes a change by which jobs that have begun may be over.
    func update<Result: Sendable>(_ change: (inout State) -> Result) -> Result {
        let (result, idle) = state.withLock { state in (change(&state), state.takeIdleGates()) }
        for gate in idle { gate.open() }
        return result
    }

    // MARK: Records

    func onRecall(_ entry: OffsetLedger.Entry, _ body: @escaping @Sendable () -> Void) {
        if state.withLock({ $0.ledger.onRecall(entry, body) }) { body() }
    }

    func begin(_ entry: OffsetLedger.Entry) -> Bool { state.withLock { $0.ledger.begin(entry) } }

    /// Begins several jobs; the result says which of them are this worker's to do.
    func begin(_ entries: [OffsetLedger.Entry]) -> [Bool] {
        state.withLock { state in entries.map { state.ledger.begin($0) } }
    }

    /// Ends several jobs.
    func end(_ entries: [OffsetLedger.Entry]) {
        let credits = update { state in
            state.ended += entries.count
            return entries.map { state.ledger.end($0) }
        }
        guard let consumer = consumer.withLock({ $0 }) else { return }
        for (entry, credit) in zip(entries, credits) { consumer.grant(credit, to: entry.partition) }
    }

    func rest(_ entry: OffsetLedger.Entry) -> Bool { update { $0.ledger.rest(entry) } }

    func end(_ entry: OffsetLedger.Entry) {
        let credit = update { state in
            state.ended += 1
            return state.ledger.end(entry)
        }
        consumer.withLock { $0 }?.grant(credit, to: entry.partition)
    }

    func handBack(_ entry: OffsetLedger.Entry) {
        update { state in
            state.handedBack += 1
            state.ledger.handBack(entry)
        }
    }

    /// When it last looked for records, whether or not a broker was there; nil before it starts and after it has left.
    public var lastPolled: ContinuousClock.Instant? { consumer.withLock { $0 }?.lastPolled }

    // MARK: Offsets

    /// Takes records of partitions that were assigned, as soon as it is known what of them has ended.
    func open(_ assignments: [OffsetLedger.Assignment], of consumer: Consumer) async {
        guard let committed = await committed(of: assignments, consumer) else { return }
        for assignment in assignments {
            let offset = committed[assignment.partition]
            let map = offset.flatMap { OffsetMap(note: $0.metadata, at: $0.offset) }
            if map == nil, let offset, !offset.metadata.isEmpty {
                log.notice(
                    "metadata of a committed offset is not of this version: jobs may be done again",
                    ["partition": assignment.partition.description])
            }
            let credit = state.withLock { $0.ledger.open(assignment, committed: offset, map: map) }
            consumer.grant(credit, to: assignment.partition)
        }
    }

    /// What the group has committed; nil when all of these partitions have gone before that was known.
    private func committed(
        of assignments: [OffsetLedger.Assignment], _ consumer: Consumer
    ) async -> [TopicPartition: GroupOffset]? {
        while state.withLock({ state in assignments.contains { state.ledger.isCurrent($0) } }) {
            do throws(KafkaError) {
                return try await consumer.committed(assignments.map(\.partition))
            } catch {
                if error.code == .closed { return nil }
                log.warning("committed offsets not known", ["error": "\(error)"])
                // A broker that does not say gives librdkafka no records either.
                await Task.sleepUnlessCancelled(for: .seconds(1))
            }
        }
        return nil
    }

    /// Recalls what of these partitions (nil: of all) has not begun, waits for what has, at most for `patience`, and commits.
    func close(_ partitions: [TopicPartition]?, within patience: Duration) async {
        recall(partitions)
        let idle = Gate()
        update { $0.idleGates.append((partitions, idle)) }
        await atMost(patience) { await idle.wait() }
        idle.open()
        await commits.commit(self)
        let untold = state.withLock { $0.ledger.untold(in: partitions) }
        guard untold > 0 else { return }
        metrics.untold.add(untold)
        log.warning("a commit had no room for all that has ended: jobs may be done again", ["offsets": untold])
    }

    func recall(_ partitions: [TopicPartition]?) {
        let bodies = state.withLock { $0.ledger.close(partitions) }
        metrics.recalled.add(bodies.count)
        for body in bodies { body() }
    }
}

/// A job record that a worker has taken. Whoever has it ends it or hands it back, once, and tells nobody of it before it has begun.
public struct TakenRecord: Sendable {
    /// What was in the topic.
    public let record: ConsumedRecord
    let entry: OffsetLedger.Entry
    let consumer: JobConsumer

    /// Says what to do when the job is to be handed back: it has not begun, and its partition is about to go or the worker drains.
    ///
    /// What was said last counts. `body` is called at most once, on any thread, and here and now if it has come to that already; never
    /// after ``begin()`` has said yes, until the job ``rest()``s.
    public func onRecall(_ body: @escaping @Sendable () -> Void) { consumer.onRecall(entry, body) }

    /// Asks, at the point of no return, whether the job is this worker's to do.
    /// - Returns: true when it is, and stays so: the group, or the drain, waits for it, as long as their patience lasts. False when it
    ///   is to be handed back: it was recalled, or its partition has gone.
    public func begin() -> Bool { consumer.begin(entry) }

    /// Asks for several records of one consumer at once, as ``begin()`` does for one.
    public static func begin(_ taken: [TakenRecord]) -> [Bool] { taken.first?.consumer.begin(taken.map(\.entry)) ?? [] }

    /// Ends several records of one consumer at once, as ``end()`` does for one.
    static func end(_ taken: [TakenRecord]) { taken.first?.consumer.end(taken.map(\.entry)) }

    /// The job waits to be tried again: it is as if it had not begun, and nobody waits for it to end.
    /// - Returns: false when it is to be handed back now: it was recalled, or its partition has gone.
    public func rest() -> Bool { consumer.rest(entry) }

    /// The job has ended and its event is published: its offset may be passed.
    public func end() { consumer.end(entry) }

    /// The job was not started, or not finished, and is left to whoever takes the partition next.
    public func handBack() { consumer.handBack(entry) }
}

/// What became of the jobs of a worker that leaves.
struct Drained: Hashable {
    /// How long it waited for those that had begun, and for the last commit.
    let took: Duration
    let ended: Int
    /// They had not begun: the next owner of their partition does them.
    let handedBack: Int
    /// They had begun, and did not end within the grace; they are done again.
    let cutShort: Int

    func tell(_ things: String, _ log: Log, _ metrics: DeliveryMetrics) {
        log.notice(
            things == "jobs" ? "drained" : "\(things) drained",
            ["took": took, "ended": ended, "handedBack": handedBack, "cutShort": cutShort])
        metrics.drainSeconds.set(took / .seconds(1))
        metrics.drained(ended: ended, handedBack: handedBack, cutShort: cutShort)
    }
}

/// What a consumer of jobs counts, or one of other things: then their name stands in the names of the metrics.
struct DeliveryMetrics: Sendable {
    /// Jobs that had not begun when their partition went or the worker drained.
    let recalled: Counter
    /// Jobs that came again though they had ended: the map of their partition said so.
    let skipped: Counter
    /// Offsets that had ended when their partition went, and that its commit had no room to tell of.
    let untold: Counter
    /// Partitions that the group has given to this consumer.
    let partitions: Gauge
    /// How long the last drain took.
    let drainSeconds: Gauge
    private let drainedJobs: (ended: Counter, handedBack: Counter, cutShort: Counter)

    init(_ metrics: Metrics, of things: String = "jobs") {
        let prefix = things == "jobs" ? "halcyon" : "halcyon_\(things)"
        recalled = metrics.counter(
            "halcyon_\(things)_recalled_total",
            help: "How many were handed back before they began: their partition went, or the worker drained.")
        skipped = metrics.counter(
            "halcyon_\(things)_skipped_total",
            help: "How many were not done again, for an earlier owner of their partition had ended them.")
        untold = metrics.counter(
            "\(prefix)_offsets_untold_total",
            help:
                "Offsets of what may be done twice: it had ended, and a partition's last commit had no room to say so.")
        partitions = metrics.gauge(
            "\(prefix)_partitions", help: "Partitions that the group has given to this consumer.")
        drainSeconds = metrics.gauge(
            "\(prefix)_drain_seconds", help: "How long the last drain took; 0 before there was one.")
        func drained(_ fate: String) -> Counter {
            metrics.counter(
                "halcyon_drained_\(things)_total",
                help: "What was under way when a drain began, by what became of it.",
                labels: ["fate": fate])
        }
        drainedJobs = (drained("ended"), drained("handed_back"), drained("cut_short"))
    }

    /// What became of jobs that were under way when a drain began.
    func drained(ended: Int, handedBack: Int, cutShort: Int) {
        drainedJobs.ended.add(ended)
        drainedJobs.handedBack.add(handedBack)
        drainedJobs.cutShort.add(cutShort)
    }
}
