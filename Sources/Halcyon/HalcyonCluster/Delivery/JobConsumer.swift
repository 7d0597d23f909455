import Concurrency
import Kafka
import Telemetry

/// Receives jobs or other records that are to be processed once, up to a window per partition, and commits their
/// offsets.
///
/// An offset is committed when its job and all earlier ones have ended. Jobs of a partition end in any order. Jobs that
/// ended beyond the committed offset are recorded in the commit metadata, so that the next owner of the partition does
/// not repeat them.
public final class JobConsumer: Sendable {
    /// The limits of a consumer and its commit settings.
    public struct Options: Sendable {
        /// The maximum number of jobs in flight per partition. A flow with fewer than ``reserve`` jobs in flight may
        /// exceed it.
        public var window = 256
        /// The number of jobs in flight per partition up to which a flow does not wait for others.
        public var reserve = 8
        /// The maximum number of jobs per partition that are received, in flight or waiting, if that is more than
        /// ``window``. Only jobs that have been received can be processed before earlier ones of other flows. It
        /// applies from the first job with a named flow on, because it costs memory and caches.
        public var lookahead = 0
        /// The maximum total size of their messages in bytes. A larger message is received alone.
        public var windowBytes = 8 << 20
        /// The maximum number of characters of commit metadata, which lists jobs that ended beyond the offset; 0 for no
        /// metadata. The limit of the brokers is `offset.metadata.max.bytes`.
        public var metadataLimit = 4096
        /// The topics whose partitions move jobs to another topic, if many jobs that wait keep later ones from being
        /// received.
        public var spilling: Set<String> = []
        /// The topics whose records wait until they are due. They do not count as lag, nor towards the rates of flows.
        public var delayed: Set<String> = []
        /// The time in which jobs that wait are processed at the present rate, if they are not to be moved.
        public var spillPatience = Duration.seconds(2)
        /// The interval between commits.
        public var commitInterval = Duration.milliseconds(250)
        /// The time that a revoked partition waits for jobs that have begun. The whole group waits meanwhile.
        public var revocationTimeout = Duration.seconds(1)
        /// The time that a revoked partition, or a drain, waits for the last commit.
        var commitTimeout = Duration.seconds(5)
        /// Creates options with default values.
        public init() {}

        /// Three quarters of what can wait.
        var spillLimit: AdmissionQueue<JobDelivery>.SpillLimit {
            .init(
                count: max(1, (lookahead - window) * 3 / 4), bytes: windowBytes * 3 / 4,
                patience: spillPatience / .seconds(1))
        }
    }

    struct State {
        var ledger: OffsetTracker
        /// The jobs that wait to be processed, and the number in flight.
        var queues: [OffsetTracker.Assignment: AdmissionQueue<JobDelivery>] = [:]
        /// The rule for jobs to hold; nil if none are held.
        var hold: HoldRule?
        var isDraining = false
        /// True if jobs are received beyond the window.
        var looksAhead = false
        var ended = 0
        var handedBack = 0
        /// The waiters for idle partitions. Each event opens when no job of its partitions (nil for all) is in
        /// progress.
        var idleEvents: [(partitions: [TopicPartition]?, event: AsyncEvent)] = []

        mutating func removeIdleEvents() -> [AsyncEvent] {
            if idleEvents.isEmpty { return [] }
            let idle = idleEvents.filter { ledger.begun(in: $0.partitions) == 0 }.map(\.event)
            idleEvents.removeAll { entry in entry.event.isSignaled || idle.contains { $0 === entry.event } }
            return idle
        }

        /// Begins a job. Returns true if this worker may process it.
        mutating func begin(_ delivery: JobDelivery) -> Bool {
            guard ledger.begin(delivery.entry) else { return false }
            queues[delivery.entry.assignment]?.resume(delivery)
            return true
        }

        /// Resets a job to the state before it began. Returns false if it must be returned to the queue now.
        mutating func release(_ delivery: JobDelivery, until due: ContinuousClock.Instant?) -> Bool {
            guard ledger.release(delivery.entry, until: due) else { return false }
            // A job that was spilled has left its queue already.
            if !delivery.isSpilled { queues[delivery.entry.assignment]?.release(delivery) }
            return true
        }

        /// Removes jobs that are no longer in flight from their queues.
        /// - Returns: the jobs that take their place.
        mutating func replace(_ deliveries: [JobDelivery]) -> [JobDelivery] {
            var admitted: [JobDelivery] = []
            // Jobs that were spilled have left their queues already.
            let deliveries =
                deliveries.contains(where: \.isSpilled) ? deliveries.filter { !$0.isSpilled } : deliveries
            for run in deliveries.runs(by: { $0.entry.assignment }) {
                admitted += queues[run[run.startIndex].entry.assignment]?.end(run) ?? []
            }
            return admitted
        }

        /// Measures the rates of all queues.
        mutating func measure(after seconds: Double) {
            for assignment in queues.keys { queues[assignment]?.measure(after: seconds) }
        }

        /// Removes jobs from full queues that move slowly.
        mutating func spill(_ limit: AdmissionQueue<JobDelivery>.SpillLimit, from topics: Set<String>) -> [JobDelivery]
        {
            var spilled: [JobDelivery] = []
            let topics = topics.subtracting(hold?.topics ?? [])
            for assignment in queues.keys where topics.contains(assignment.partition.topic) {
                spilled += queues[assignment]?.spill(limit) ?? []
            }
            for index in spilled.indices { spilled[index].isSpilled = true }
            return spilled
        }

        /// Admits jobs whose flows are within their limits again.
        mutating func admitWithinLimits() -> [JobDelivery] {
            queues.keys.flatMap { queues[$0]?.admitWithinLimits() ?? [] }
        }

        /// The time since which a record has held back the offset to commit, of the partition where that is longest;
        /// nil without such records. Records that are held do not count, and those that wait count once they are due.
        var heldBackSince: ContinuousClock.Instant? {
            let held = Dictionary(
                queues.map { ($0.key.partition, $0.value.held) }, uniquingKeysWith: { $0 + $1 })
            return ledger.heldBackSince { offset, partition in
                held[partition]?.contains { $0.entry.offset == offset } ?? false
            }
        }

        /// Drops the jobs of these partitions (nil for all) that wait to be processed.
        /// - Returns: their number.
        mutating func dropWaiting(of partitions: [TopicPartition]?) -> Int {
            var dropped = 0
            for (assignment, queue) in queues where partitions?.contains(assignment.partition) ?? true {
                dropped += queue.count
                queue.releaseLimits()
                queues[assignment] = nil
            }
            return dropped
        }
    }

    /// The time between two looks for jobs whose flows are within their limits again.
    private static let limitInterval = Duration.milliseconds(50)
    /// The time that leaving the group may take.
    private static let leaveTimeout = Duration.seconds(5)

    let options: Options
    let log: Log
    let things: String
    let metrics: DeliveryMetrics
    let state: Lock<State>
    let consumer = Lock<Consumer?>(nil)
    private let commits: any OffsetCommitter
    private let committing = PrioritySemaphore(1)
    private let committer = Lock<Task<Void, Never>?>(nil)
    /// The task that admits jobs of limited flows.
    private let admitter = Lock<Task<Void, Never>?>(nil)
    /// The event that opens when the group has assigned partitions to this consumer for the first time.
    let assignment = AsyncEvent()
    let onEnd: @Sendable (KafkaError) -> Void
    let flow: @Sendable (ConsumedRecord) -> Flow
    private let hold: @Sendable () -> HoldRule?
    let receive: @Sendable ([JobDelivery]) -> Void
    private let limiter: FlowLimiter?
    private let spill: @Sendable ([JobDelivery]) -> Void

    /// Creates a consumer.
    /// - Parameters:
    ///   - things: the name of the records in metric names.
    ///   - commits: the component that commits offsets.
    ///   - onEnd: the callback for an error that ends the membership in the group, for example if another member uses
    ///     the same `group.instance.id`.
    ///   - flow: the flow of a record. Flows share the window of a partition in proportion to their weights.
    ///   - limiter: the limits of flows; nil for none.
    ///   - hold: the current rule for records to hold: they are not processed until they are released; nil to hold none.
    ///     It is called once at the start and by ``updateHold()``.
    ///   - receive: the receiver of record batches, called on any thread. It must not block, and every record must be
    ///     ended or returned to the queue.
    ///   - spill: the receiver of records to move to another topic, with the same obligations.
    public init(
        options: Options = Options(), of things: String = "jobs", commits: any OffsetCommitter = AsyncOffsetCommitter(),
        log: Log, metrics: Metrics,
        onEnd: @escaping @Sendable (KafkaError) -> Void = { _ in },
        flow: @escaping @Sendable (ConsumedRecord) -> Flow = { _ in Flow() },
        limiter: FlowLimiter? = nil,
        hold: @escaping @Sendable () -> HoldRule? = { nil },
        receive: @escaping @Sendable ([JobDelivery]) -> Void,
        spill: @escaping @Sendable ([JobDelivery]) -> Void = { _ in }
    ) {
        self.options = options
        self.commits = commits
        self.onEnd = onEnd
        self.flow = flow
        self.limiter = limiter
        self.hold = hold
        self.log = log
        self.things = things
        self.metrics = DeliveryMetrics(metrics, of: things)
        self.receive = receive
        self.spill = spill
        state = Lock(
            State(
                ledger: OffsetTracker(
                    window: Credit(records: options.window, bytes: options.windowBytes),
                    metadataLimit: options.metadataLimit)))
        addReadings(to: metrics)
    }

    // MARK: Life

    /// Joins the group and starts to receive records.
    /// - Throws: ``KafkaError`` that names a rejected property.
    public func start(
        topics: [String], properties: [String: String], events: ClientCallbacks
    ) async throws(KafkaError) {
        updateHold()
        let started = try await Consumer.start(
            topics: topics, properties: properties, handler: self, events: events)
        consumer.withLock { $0 = started }
        let interval = options.commitInterval
        // The task retains the consumer until it is drained.
        let task = Task {
            var last = ContinuousClock.now
            while !Task.isCancelled {
                await Task.sleepUnlessCancelled(for: interval)
                await commit()
                let now = ContinuousClock.now
                spillFullQueues(after: last.duration(to: now))
                last = now
            }
        }
        committer.withLock { $0 = task }
        if limiter != nil {
            let task = Task {
                while !Task.isCancelled {
                    await Task.sleepUnlessCancelled(for: Self.limitInterval)
                    let admitted = state.withLock { $0.isDraining ? [] : $0.admitWithinLimits() }
                    if !admitted.isEmpty { receive(admitted) }
                }
            }
            admitter.withLock { $0 = task }
        }
    }

    /// Stops receiving and beginning jobs, waits up to `grace` for jobs that have begun, commits, and leaves the group.
    /// - Returns: the number of jobs that had begun and did not end within the grace period. They are redelivered.
    public func shutdown(gracePeriod grace: Duration) async -> Int {
        let start = ContinuousClock.now
        let before = state.withLock { state in
            state.isDraining = true
            return (ended: state.ended, handedBack: state.handedBack)
        }
        await close(nil, within: grace)
        committer.withLock { $0 }?.cancel()
        admitter.withLock { $0 }?.cancel()
        let (left, drained) = state.withLock { state in
            let left = state.ledger.begun(in: nil)
            return (
                left,
                DrainSummary(
                    took: start.duration(to: .now), ended: state.ended - before.ended,
                    handedBack: state.handedBack - before.handedBack, cutShort: left)
            )
        }
        drained.report(things, log, metrics)
        // Jobs that are left must not delay leaving the group.
        update { $0.ledger.revokeAll() }
        reportPartitions()
        await leave()
        return left
    }

    /// Leaves the group. If librdkafka does not end, the group notices when the session expires, as after a crash.
    private func leave() async {
        guard let member = consumer.withLock({ $0 }) else { return }
        let hasLeft = await ends(within: Self.leaveTimeout) { await member.close() }
        consumer.withLock { $0 = nil }
        if !hasLeft {
            log.warning("worker did not leave its group in time", ["of": things, "timeout": Self.leaveTimeout])
        }
    }

    /// Waits for `work`, but at most for `limit`. Unfinished work continues in the background.
    /// - Returns: true if the work has ended.
    private func ends(within limit: Duration, _ work: @escaping @Sendable () async -> Void) async -> Bool {
        let hasEnded = Lock(false)
        await withTimeout(limit) {
            await work()
            hasEnded.withLock { $0 = true }
        }
        return hasEnded.withLock { $0 }
    }

    /// True if the group has assigned partitions to this consumer, possibly none, and it is not draining.
    public var isServing: Bool { assignment.isSignaled && !state.withLock { $0.isDraining } }

    /// True if jobs of this partition are received here.
    func owns(_ partition: TopicPartition) -> Bool {
        state.withLock { $0.queues.keys.contains { $0.partition == partition } }
    }

    func reportPartitions() { metrics.partitions.set(Double(state.withLock { $0.ledger.partitionCount })) }

    /// Waits until the group has assigned partitions to this consumer, possibly none, for the first time, or the task
    /// is cancelled.
    public func waitForAssignment() async { await assignment.wait() }

    /// Applies a change after which partitions may be idle.
    func update<Result: Sendable>(_ change: (inout State) -> Result) -> Result {
        let (result, idle) = state.withLock { state in (change(&state), state.removeIdleEvents()) }
        for event in idle { event.signal() }
        return result
    }

    // MARK: Records

    /// - Parameter time: The time since the last call.
    private func spillFullQueues(after time: Duration) {
        let spilled = state.withLock { state -> [JobDelivery] in
            guard state.looksAhead, !state.isDraining else { return [] }
            state.measure(after: time / .seconds(1))
            return state.spill(options.spillLimit, from: options.spilling)
        }
        if !spilled.isEmpty { spill(spilled) }
    }

    /// Applies the current rule for records to hold. Records that are released are processed, and those in flight
    /// continue.
    public func updateHold() {
        let released = state.withLock { state in
            let rule = hold()
            state.hold = rule
            return state.queues.keys.compactMap { state.queues[$0]?.hold(where: rule?.isHeld) }
        }
        for admitted in released where !admitted.isEmpty { receive(admitted) }
    }

    func onRevocation(_ entry: OffsetTracker.Entry, _ body: @escaping @Sendable () -> Void) {
        if state.withLock({ $0.ledger.onRevocation(entry, body) }) { body() }
    }

    func begin(_ delivery: JobDelivery) -> Bool { state.withLock { $0.begin(delivery) } }

    /// Begins several jobs. The result tells which of them this worker may process.
    func begin(_ deliveries: [JobDelivery]) -> [Bool] {
        state.withLock { state in deliveries.map { state.begin($0) } }
    }

    func release(_ delivery: JobDelivery, until due: ContinuousClock.Instant?) -> Bool {
        update { $0.release(delivery, until: due) }
    }

    /// Ends jobs. Their offsets may be committed, and jobs that wait take their place.
    /// - Parameter committed: the offsets that the brokers have stored with their end.
    func end(_ deliveries: [JobDelivery], committed: [TopicPartition: GroupOffset] = [:]) {
        let consumer = consumer.withLock { $0 }
        let admitted = update { state in
            state.ledger.committed(committed)
            state.ended += deliveries.count
            for run in deliveries.runs(by: { $0.entry.assignment }) {
                let credit: Credit = run.reduce(into: .none) { $0 += state.ledger.end($1.entry) }
                // Under the lock, so that the partition has not been revoked and assigned again meanwhile.
                consumer?.addCredit(credit, to: run[run.startIndex].entry.partition)
            }
            return state.replace(deliveries)
        }
        if !admitted.isEmpty { receive(admitted) }
    }

    func returnToQueue(_ delivery: JobDelivery) {
        let admitted = update { state in
            state.handedBack += 1
            state.ledger.returnToQueue(delivery.entry)
            return state.replace([delivery])
        }
        if !admitted.isEmpty { receive(admitted) }
    }

    /// The time of the last poll, whether or not a broker was reachable; nil before the start and after leaving.
    public var lastPolled: ContinuousClock.Instant? { consumer.withLock { $0 }?.lastPolled }

    // MARK: Offsets

    /// Starts to receive records of assigned partitions as soon as their committed offsets are known.
    func open(_ assignments: [OffsetTracker.Assignment], of consumer: Consumer) async {
        guard let committed = await committed(of: assignments, consumer) else { return }
        for assignment in assignments {
            let offset = committed[assignment.partition]
            let map = offset.flatMap { CompletedRanges(commitMetadata: $0.metadata, at: $0.offset) }
            if map == nil, let offset, !offset.metadata.isEmpty {
                log.notice(
                    "ignoring commit metadata of another version; some jobs may be redelivered",
                    ["partition": assignment.partition.description])
            }
            state.withLock { state in
                guard state.ledger.isCurrent(assignment) else { return }
                state.queues[assignment] = AdmissionQueue(
                    window: options.window, reserve: options.reserve, limiter: limiter,
                    isRated: !options.delayed.contains(assignment.partition.topic), isHeld: state.hold?.isHeld)
                // Under the lock, as in `end`.
                let credit = state.ledger.open(assignment, committed: offset, map: map)
                consumer.addCredit(credit, to: assignment.partition)
            }
        }
    }

    /// The offsets that the group has committed; nil if all of these partitions were revoked before they were known.
    private func committed(
        of assignments: [OffsetTracker.Assignment], _ consumer: Consumer
    ) async -> [TopicPartition: GroupOffset]? {
        while state.withLock({ state in assignments.contains { state.ledger.isCurrent($0) } }) {
            do throws(KafkaError) {
                return try await consumer.committed(assignments.map(\.partition))
            } catch {
                if error.code == .closed { return nil }
                log.warning("reading committed offsets failed; retrying", ["error": "\(error)"])
                // A broker that does not reply sends librdkafka no records either.
                await Task.sleepUnlessCancelled(for: .seconds(1))
            }
        }
        return nil
    }

    /// Revokes jobs of these partitions (nil for all) that have not begun, waits up to `timeout` for the others, and
    /// commits. The commit has a limit of its own, because librdkafka waits long for a coordinator that does not
    /// respond.
    func close(_ partitions: [TopicPartition]?, within timeout: Duration) async {
        recall(partitions)
        let idle = AsyncEvent()
        update { $0.idleEvents.append((partitions, idle)) }
        await withTimeout(timeout) { await idle.wait() }
        idle.signal()
        if !(await ends(within: options.commitTimeout, { [self] in await commit() })) {
            log.warning(
                "offsets were not committed in time; completed jobs may be redelivered",
                ["of": things, "timeout": options.commitTimeout])
        }
        let untracked = state.withLock { $0.ledger.untracked(in: partitions) }
        guard untracked > 0 else { return }
        metrics.untracked.add(untracked)
        log.warning("commit metadata limit reached; some completed jobs may be redelivered", ["offsets": untracked])
    }

    /// Commits when earlier commits have ended. Otherwise one of them, with older offsets, could arrive after this one.
    private func commit() async {
        // Throws only in the periodic task, which is cancelled after the last commit.
        guard (try? await committing.acquire()) != nil else { return }
        defer { committing.release() }
        await commits.commit(self)
    }

    func recall(_ partitions: [TopicPartition]?) {
        let (bodies, dropped) = state.withLock { state in
            let dropped = state.dropWaiting(of: partitions)
            state.handedBack += dropped
            return (state.ledger.close(partitions), dropped)
        }
        metrics.revoked.add(bodies.count + dropped)
        for body in bodies { body() }
    }
}

/// A record that a worker has received. Its owner ends it or returns it to the queue, exactly once, and publishes
/// nothing before it has begun.
public struct JobDelivery: Sendable {
    /// The record as it was in the topic.
    public let record: ConsumedRecord
    /// The flow that the record belongs to.
    public let flow: Flow
    let entry: OffsetTracker.Entry
    let consumer: JobConsumer
    /// True if the job has left the queue of its partition to be moved to another topic.
    var isSpilled = false

    /// Sets the callback for the case that the job must be returned to the queue: it has not begun, and its partition
    /// is being revoked or the worker drains.
    ///
    /// The last callback set counts. It is called at most once, on any thread, and immediately if the job is revoked
    /// already. It is never called after ``claim()`` has returned true, until ``release()``.
    public func onRevocation(_ body: @escaping @Sendable () -> Void) { consumer.onRevocation(entry, body) }

    /// Begins the job, unless it was revoked. This is the point of no return.
    /// - Returns: true if this worker may process the job. The rebalance or drain then waits for it, up to its timeout.
    ///   False if the job must be returned to the queue, because it or its partition was revoked.
    public func claim() -> Bool { consumer.begin(self) }

    /// Begins several records of one consumer at once, like ``claim()``.
    public static func claim(_ deliveries: [JobDelivery]) -> [Bool] {
        deliveries.first?.consumer.begin(deliveries) ?? []
    }

    /// Ends several records of one consumer at once, like ``acknowledge()``.
    static func acknowledge(_ deliveries: [JobDelivery]) { deliveries.first?.consumer.end(deliveries) }

    /// Resets a job that waits for a retry to the state before ``claim()``, so that rebalances and drains do not wait
    /// for it. Until it is claimed again, it does not count towards the limits of its flow.
    /// - Parameter due: The time until which the job waits for its start or its next attempt; nil if it does not. Until
    ///   then it does not count as holding back the committed offset.
    /// - Returns: false if the job must be returned to the queue now, because it or its partition was revoked.
    public func release(until due: ContinuousClock.Instant? = nil) -> Bool { consumer.release(self, until: due) }

    /// Ends the job after its event was published. Its offset may be committed.
    public func acknowledge() { consumer.end([self]) }

    /// Returns a job that was not started or not finished to the queue. The next owner of the partition receives it
    /// again.
    public func returnToQueue() { consumer.returnToQueue(self) }
}

extension JobDelivery {
    /// Runs an operation that must not delay the revocation of a partition.
    /// - Throws: An error of `body`, or `CancellationError` if the record is revoked first.
    public func untilRecalled<Value: Sendable>(
        _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        let task = Task { try await body() }
        onRevocation { task.cancel() }
        return try await task.value
    }

    /// Claims the delivery, or returns it to the queue if it was revoked.
    func claimOrReturn() -> Bool {
        if claim() { return true }
        returnToQueue()
        return false
    }

    /// Releases the delivery, or returns it to the queue if it was revoked.
    func releaseOrReturn() -> Bool {
        if release() { return true }
        returnToQueue()
        return false
    }
}

/// The outcome of a drain.
struct DrainSummary: Hashable {
    /// The time spent waiting for jobs that had begun, and for the last commit.
    let took: Duration
    let ended: Int
    /// The number of jobs that had not begun. The next owner of their partition processes them.
    let handedBack: Int
    /// The number of jobs that had begun and did not end within the grace period. They are redelivered.
    let cutShort: Int

    func report(_ things: String, _ log: Log, _ metrics: DeliveryMetrics) {
        log.notice(
            things == "jobs" ? "drained" : "\(things) drained",
            ["took": took, "ended": ended, "handedBack": handedBack, "cutShort": cutShort])
        metrics.drainSeconds.set(took / .seconds(1))
        metrics.drained(ended: ended, handedBack: handedBack, cutShort: cutShort)
    }
}

/// The metrics of a consumer. The name of its records is part of the metric names.
struct DeliveryMetrics: Sendable {
    /// Jobs that were returned before they began, because their partition was revoked or the worker drained.
    let revoked: Counter
    /// Jobs that were redelivered although the commit metadata lists them as completed.
    let skipped: Counter
    /// Completed offsets that did not fit into the metadata of the last commit of a revoked partition.
    let untracked: Counter
    /// Partitions assigned to this consumer.
    let partitions: Gauge
    /// The duration of the last drain.
    let drainSeconds: Gauge
    private let drainedJobs: (ended: Counter, handedBack: Counter, cutShort: Counter)

    init(_ metrics: Metrics, of things: String = "jobs") {
        let prefix = things == "jobs" ? "halcyon" : "halcyon_\(things)"
        revoked = metrics.counter(
            "halcyon_\(things)_revoked_total",
            help: "Records returned before they began, because their partition was revoked or the worker drained.")
        skipped = metrics.counter(
            "halcyon_\(things)_skipped_total",
            help: "Redelivered records that were skipped because an earlier owner of the partition completed them.")
        untracked = metrics.counter(
            "\(prefix)_offsets_untracked_total",
            help: "Completed offsets that did not fit into commit metadata and may be redelivered.")
        partitions = metrics.gauge(
            "\(prefix)_partitions", help: "Partitions assigned to this consumer.")
        drainSeconds = metrics.gauge(
            "\(prefix)_drain_seconds", help: "Duration of the last drain in seconds; 0 before the first one.")
        func drained(_ fate: String) -> Counter {
            metrics.counter(
                "halcyon_drained_\(things)_total",
                help: "Records in flight when a drain began, by outcome.",
                labels: ["fate": fate])
        }
        drainedJobs = (drained("ended"), drained("handed_back"), drained("cut_short"))
    }

    /// Counts the jobs that were in flight when a drain began, by outcome.
    func drained(ended: Int, handedBack: Int, cutShort: Int) {
        drainedJobs.ended.add(ended)
        drainedJobs.handedBack.add(handedBack)
        drainedJobs.cutShort.add(cutShort)
    }
}

/// The records that are held because something is paused.
public struct HoldRule: Sendable {
    /// The topics that are held as a whole.
    public let topics: Set<String>
    /// A function that returns true for a record to hold.
    public let isHeld: @Sendable (JobDelivery) -> Bool

    /// Creates a rule.
    public init(topics: Set<String>, isHeld: @escaping @Sendable (JobDelivery) -> Bool) {
        self.topics = topics
        self.isHeld = isHeld
    }
}
