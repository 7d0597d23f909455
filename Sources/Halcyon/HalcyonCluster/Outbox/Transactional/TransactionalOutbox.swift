import Concurrency
import Kafka
import Telemetry

/// An exactly-once outbox, which commits the events of jobs and their offsets in one transaction. A reader of committed
/// records sees one terminal event for each job, even if the worker crashes.
///
/// There is one transaction at a time. Jobs that end meanwhile join the next one. All commits of the consumer go
/// through this outbox, because a separate commit could reset offsets that a transaction has committed. See
/// docs/delivery.md for the reasoning.
public actor TransactionalOutbox: Outbox, OffsetCommitter {
    private let options: TransactionOptions
    private let log: Log
    private let metrics: TransactionMetrics
    private let transactions: Transactions
    private let onEnd: @Sendable (KafkaError) -> Void

    private var queue = PendingCompletionQueue()
    private var commitRequests: [Int: CheckedContinuation<Void, Never>] = [:]
    private var commitRequestCount = 0
    private var wishing: JobConsumer?
    private var bell: CheckedContinuation<Void, Never>?
    private var nap: Task<Void, Never>?
    private var driver: Task<Void, Never>?
    private var backoff = Backoff.kafka
    /// The event that opens when this worker owns the transactional id, or never will.
    private let readiness = AsyncEvent()
    /// The error after which nothing is committed any more.
    private var end: KafkaError?

    /// The maximum time that a commit request waits for brokers that do not respond.
    private static let timeout = Duration.seconds(5)

    /// Creates an outbox.
    /// - Parameters:
    ///   - properties: the properties of the producer, with a `transactional.id`.
    ///   - onEnd: the callback for a fatal error: another worker uses the same instance name, or the brokers do not
    ///     support transactions.
    public init(
        properties: [String: String], options: TransactionOptions, events: ClientCallbacks, log: Log, metrics: Metrics,
        onEnd: @escaping @Sendable (KafkaError) -> Void
    ) {
        self.options = options
        self.log = log
        self.metrics = TransactionMetrics(metrics)
        self.onEnd = onEnd
        transactions = Transactions(
            properties, isNamed: options.instance != nil, events: events, log: log, metrics: self.metrics)
    }

    /// Acquires the transactional id and starts to commit. It must be called once.
    public func start() {
        driver = Task { await drive() }
    }

    /// Waits until this worker owns the transactional id, or never will, or the task is cancelled.
    public nonisolated func ready() async { await readiness.wait() }

    /// Stops committing, and fails all jobs that wait. It waits for the transaction in progress.
    public func close() async {
        finish(Self.closed)
        await transactions.stopWaiting()
        await driver?.value
        await transactions.close()
    }

    private static let closed = KafkaError(code: .closed, message: "the worker is closed")

    // MARK: Requests

    /// Waits until the job's transaction is committed. Waiting jobs hold no resources.
    public func complete(_ delivery: JobDelivery, publishing records: [ProducerRecord]) async throws(KafkaError) {
        if let end { throw end }
        let error = await withCheckedContinuation { continuation in
            queue.append(PendingCompletion(delivery, records, continuation))
            if queue.count >= options.batch { nap?.cancel() }
            ring()
        }
        if let error { throw error }
    }

    /// Commits offsets of records that ended without an event, such as those completed by earlier owners of a
    /// partition. Waits for one attempt.
    public func commit(_ consumer: JobConsumer) async {
        guard end == nil, queue.hasUntracked || consumer.hasUncommitted else { return }
        commitRequestCount += 1
        let number = commitRequestCount
        let timeout = Task {
            try await Task.sleep(for: Self.timeout)
            fulfil(number)
        }
        await withCheckedContinuation { continuation in
            commitRequests[number] = continuation
            wishing = consumer
            ring()
        }
        timeout.cancel()
    }

    private func fulfil(_ number: Int) { commitRequests.removeValue(forKey: number)?.resume() }

    private func fulfilCommitRequests() {
        for commitRequest in commitRequests.values { commitRequest.resume() }
        commitRequests = [:]
        wishing = nil
    }

    private func ring() {
        bell?.resume()
        bell = nil
    }

    // MARK: Transactions

    private func drive() async {
        do throws(KafkaError) {
            try await transactions.open()
            readiness.signal()
            while await somethingToDo() { await commitNext() }
        } catch {
            finish(error)
        }
        let end = end ?? Self.closed
        for completion in queue.removeAll() { completion.fail(end) }
        fulfilCommitRequests()
    }

    /// Stops all further commits.
    private func finish(_ error: KafkaError) {
        guard end == nil else { return }
        end = error
        // Whoever waits for readiness finds the reason afterwards.
        if error.code != .closed { onEnd(error) }
        readiness.signal()
        nap?.cancel()
        ring()
    }

    /// Waits for jobs that have ended, and then briefly for more of them. Returns false after the end.
    private func somethingToDo() async -> Bool {
        while queue.isEmpty, commitRequests.isEmpty, end == nil {
            await withCheckedContinuation { bell = $0 }
        }
        if let oldest = queue.oldest, end == nil, queue.count < options.batch {
            let nap = Task { [options] in _ = await Task.sleepUnlessCancelled(until: oldest + options.linger) }
            self.nap = nap
            await nap.value
        }
        return end == nil
    }

    private func commitNext() async {
        let batch = queue.next(options.batch)
        guard let consumer = batch.first?.delivery.consumer ?? wishing else { return fulfilCommitRequests() }
        let membership: GroupMembership
        do throws(KafkaError) {
            membership = try await consumer.membership()
        } catch {
            // The consumer is joining or leaving the group.
            queue.putBack(staying(batch, consumer))
            fulfilCommitRequests()
            return await pause()
        }
        // docs/delivery.md explains this order.
        let snapshot = consumer.snapshot(ending: batch.map(\.entry))
        var chosen: [PendingCompletion] = []
        for completion in batch {
            if snapshot.gone.contains(completion.entry) {
                completion.leave()
            } else if snapshot.untracked.contains(completion.entry) {
                queue.setAside([completion])
            } else {
                chosen.append(completion)
            }
        }
        if chosen.isEmpty && snapshot.offsets.isEmpty { return fulfilCommitRequests() }
        let outcome = await transactions.run(
            chosen.flatMap(\.records), offsets: snapshot.offsets, of: membership)
        switch outcome {
        case .committed:
            ended(chosen, snapshot.offsets, consumer)
            backoff.reset()
        case .aborted(let error, let failures):
            refused(snapshot.offsets, error, consumer)
            await again(chosen, because: reasons(of: failures, in: chosen, error))
        case .inDoubt(let error, let failures):
            refused(snapshot.offsets, error, consumer)
            await again(undecided(chosen, consumer), because: reasons(of: failures, in: chosen, error))
        case .over(let error):
            finish(error)
            for completion in chosen { completion.fail(error) }
        }
        fulfilCommitRequests()
    }

    private func ended(
        _ completions: [PendingCompletion], _ offsets: [TopicPartition: GroupOffset], _ consumer: JobConsumer
    ) {
        consumer.end(completions.map(\.delivery), committed: offsets)
        metrics.jobs.add(completions.count)
        for completion in completions { completion.end() }
    }

    private func pause() async { await Task.sleepUnlessCancelled(for: backoff.next()) }

    /// Fails jobs whose partition was revoked, and returns the others.
    private func staying(_ completions: [PendingCompletion], _ consumer: JobConsumer) -> [PendingCompletion] {
        completions.filter { completion in
            if consumer.isCurrent(completion.entry) { return true }
            completion.leave()
            return false
        }
    }

    /// Reads the committed offsets after a transaction of unknown outcome, and completes the jobs that it committed.
    /// - Returns: the jobs that have not ended.
    private func undecided(_ completions: [PendingCompletion], _ consumer: JobConsumer) async -> [PendingCompletion] {
        var open = completions
        while end == nil {
            open = staying(open, consumer)
            if open.isEmpty { return [] }
            do throws(KafkaError) {
                let found = try await consumer.endedOffsets(of: Set(open.map(\.entry.partition)))
                open = staying(open, consumer)
                let isEnded = { (completion: PendingCompletion) in
                    found[completion.entry.partition]?.ended.contains(completion.entry.offset) ?? false
                }
                let done = open.filter(isEnded)
                log.notice(
                    "resolved a transaction of unknown outcome",
                    ["ended": done.count, "open": open.count - done.count])
                ended(done, found.mapValues(\.offset), consumer)
                return open.filter { !isEnded($0) }
            } catch {
                log.warning("reading committed offsets failed; retrying", ["error": "\(error)"])
                await pause()
            }
        }
        return open
    }

    private func refused(
        _ offsets: [TopicPartition: GroupOffset], _ error: KafkaError, _ consumer: JobConsumer
    ) {
        guard error.code == .offsetMetadataTooLarge else { return }
        consumer.refusedMetadata(ofLength: offsets.values.map(\.metadata.utf8.count).max() ?? 0)
    }

    /// The jobs with a record that was rejected, or may have been. Brokers that reject a topic do not tell which record
    /// is affected.
    private func reasons(
        of failures: [Int: KafkaError], in completions: [PendingCompletion], _ error: KafkaError
    ) -> [OffsetTracker.Entry: KafkaError] {
        if error.code == .topicNotAllowed {
            return Dictionary(completions.map { ($0.entry, error) }) { first, _ in first }
        }
        let places = completions.flatMap { completion in completion.records.map { _ in completion.entry } }
        return Dictionary(failures.filter(\.value.isOfTheRecord).map { (places[$0], $1) }) { first, _ in first }
    }

    /// Returns jobs to the queue for another transaction. A job fails if its records are rejected in a transaction of
    /// their own. If several jobs were in the transaction, each suspect is retried alone first.
    private func again(_ completions: [PendingCompletion], because reasons: [OffsetTracker.Entry: KafkaError]) async {
        if completions.count == 1, let reason = reasons[completions[0].entry] { return completions[0].fail(reason) }
        queue.putBack(
            completions.map { completion in
                var completion = completion
                completion.isSuspect = reasons[completion.entry] != nil
                return completion
            })
        if reasons.isEmpty { await pause() }
    }
}

extension KafkaError {
    /// True if the record itself was rejected, rather than the transaction, and a retry cannot help.
    fileprivate var isOfTheRecord: Bool {
        !isRetriable && ![.purgedFromQueue, .purgedInFlight, .wrongState, .closed].contains(code)
    }
}
