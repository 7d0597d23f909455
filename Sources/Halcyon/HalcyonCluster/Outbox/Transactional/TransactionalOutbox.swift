import Kafka
import Telemetry
import Threads

/// Exactly once: what is told of jobs and the offsets that pass them are committed in one transaction, so that who reads what is committed sees
/// each job end once, whatever happens to the worker.
///
/// One transaction at a time; the jobs that end meanwhile go into the next one. All of a consumer's commits go through here: a commit beside
/// a transaction could take back what the transaction has committed. docs/delivery.md has the argument.
public actor TransactionalOutbox: Outbox, OffsetCommits {
    private let options: TransactionOptions
    private let log: Log
    private let metrics: TransactionMetrics
    private let transactions: Transactions
    private let onEnd: @Sendable (KafkaError) -> Void

    private var queue = SettlingQueue()
    private var wishes: [Int: CheckedContinuation<Void, Never>] = [:]
    private var wishCount = 0
    private var wishing: JobConsumer?
    private var bell: CheckedContinuation<Void, Never>?
    private var nap: Task<Void, Never>?
    private var driver: Task<Void, Never>?
    private var backoff = Backoff.kafka
    /// Open when the transactional id is this worker's, or never will be.
    private let readiness = Gate()
    /// Why nothing is settled any more.
    private var end: KafkaError?

    /// For how long who wants offsets committed waits for brokers that do not answer.
    private static let patience = Duration.seconds(5)

    /// - Parameters:
    ///   - properties: of the producer, with a `transactional.id`.
    ///   - onEnd: called when nothing can be settled any more, and why: another worker has the instance's name, or the brokers know no
    ///     transactions.
    public init(
        properties: [String: String], options: TransactionOptions, events: ClientEvents, log: Log, metrics: Metrics,
        onEnd: @escaping @Sendable (KafkaError) -> Void
    ) {
        self.options = options
        self.log = log
        self.metrics = TransactionMetrics(metrics)
        self.onEnd = onEnd
        transactions = Transactions(
            properties, isNamed: options.instance != nil, events: events, log: log, metrics: self.metrics)
    }

    /// Takes over the transactional id, and begins to settle. To be called once.
    public func start() {
        driver = Task { await drive() }
    }

    /// Waits until the transactional id is this worker's, or never will be, or the task is cancelled.
    public nonisolated func ready() async { await readiness.wait() }

    /// Fails what has not been settled, and ends. A transaction under way is waited for.
    public func close() async {
        finish(Self.closed)
        await transactions.stopWaiting()
        await driver?.value
        await transactions.close()
    }

    private static let closed = KafkaError(code: .closed, message: "the worker is closed")

    // MARK: What is to be committed

    /// Waits, without holding anything, until the job's transaction is committed.
    public func settle(_ taken: TakenRecord, telling records: [ProducerRecord]) async throws(KafkaError) {
        if let end { throw end }
        let error = await withCheckedContinuation { continuation in
            queue.append(Settling(taken, records, continuation))
            if queue.count >= options.batch { nap?.cancel() }
            ring()
        }
        if let error { throw error }
    }

    /// Commits what ended without being told of, such as what earlier owners of a partition had ended, and waits for one attempt at it.
    public func commit(_ consumer: JobConsumer) async {
        guard end == nil, queue.hasUntold || consumer.hasUncommitted else { return }
        wishCount += 1
        let number = wishCount
        let patience = Task {
            try await Task.sleep(for: Self.patience)
            fulfil(number)
        }
        await withCheckedContinuation { continuation in
            wishes[number] = continuation
            wishing = consumer
            ring()
        }
        patience.cancel()
    }

    private func fulfil(_ number: Int) { wishes.removeValue(forKey: number)?.resume() }

    private func fulfilWishes() {
        for wish in wishes.values { wish.resume() }
        wishes = [:]
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
            readiness.open()
            while await somethingToDo() { await commitNext() }
        } catch {
            finish(error)
        }
        let end = end ?? Self.closed
        for settling in queue.removeAll() { settling.fail(end) }
        fulfilWishes()
    }

    /// Nothing is settled from now on.
    private func finish(_ error: KafkaError) {
        guard end == nil else { return }
        end = error
        readiness.open()
        nap?.cancel()
        ring()
        if error.code != .closed { onEnd(error) }
    }

    /// Waits for jobs that have ended, and for more of them for a moment; false at the end.
    private func somethingToDo() async -> Bool {
        while queue.isEmpty, wishes.isEmpty, end == nil {
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
        guard let consumer = batch.first?.taken.consumer ?? wishing else { return fulfilWishes() }
        let membership: GroupMembership
        do throws(KafkaError) {
            membership = try await consumer.membership()
        } catch {
            // It is on its way into the group, or out of it.
            queue.putBack(staying(batch, consumer))
            fulfilWishes()
            return await rest()
        }
        // In this order: docs/delivery.md says why.
        let snapshot = consumer.snapshot(ending: batch.map(\.entry))
        var chosen: [Settling] = []
        for settling in batch {
            if snapshot.gone.contains(settling.entry) {
                settling.leave()
            } else if snapshot.untold.contains(settling.entry) {
                queue.setAside([settling])
            } else {
                chosen.append(settling)
            }
        }
        if chosen.isEmpty && snapshot.offsets.isEmpty { return fulfilWishes() }
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
            for settling in chosen { settling.fail(error) }
        }
        fulfilWishes()
    }

    private func ended(
        _ settlings: [Settling], _ offsets: [TopicPartition: GroupOffset], _ consumer: JobConsumer
    ) {
        consumer.committed(offsets, ending: settlings.map(\.entry))
        metrics.jobs.add(settlings.count)
        for settling in settlings { settling.end() }
    }

    private func rest() async { await Task.sleepUnlessCancelled(for: backoff.next()) }

    /// Lets go of what another worker has by now.
    private func staying(_ settlings: [Settling], _ consumer: JobConsumer) -> [Settling] {
        settlings.filter { settling in
            if consumer.isCurrent(settling.entry) { return true }
            settling.leave()
            return false
        }
    }

    /// Learns, after a transaction that is over but of unknown outcome, which of its jobs have ended.
    /// - Returns: those that have not.
    private func undecided(_ settlings: [Settling], _ consumer: JobConsumer) async -> [Settling] {
        var open = settlings
        while end == nil {
            open = staying(open, consumer)
            if open.isEmpty { return [] }
            do throws(KafkaError) {
                let found = try await consumer.endedOffsets(of: Set(open.map(\.entry.partition)))
                open = staying(open, consumer)
                let isEnded = { (settling: Settling) in
                    found[settling.entry.partition]?.ended.contains(settling.entry.offset) ?? false
                }
                let done = open.filter(isEnded)
                log.notice(
                    "a transaction of unknown outcome is settled",
                    ["ended": done.count, "open": open.count - done.count])
                ended(done, found.mapValues(\.offset), consumer)
                return open.filter { !isEnded($0) }
            } catch {
                log.warning("committed offsets not known", ["error": "\(error)"])
                await rest()
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

    /// The jobs one of whose records failed for its own sake, or may have: brokers that refuse to add a topic to the transaction do not say
    /// whose it is.
    private func reasons(
        of failures: [Int: KafkaError], in settlings: [Settling], _ error: KafkaError
    ) -> [OffsetLedger.Entry: KafkaError] {
        if error.code == .topicNotAllowed {
            return Dictionary(settlings.map { ($0.entry, error) }) { first, _ in first }
        }
        let places = settlings.flatMap { settling in settling.records.map { _ in settling.entry } }
        return Dictionary(failures.filter(\.value.isOfTheRecord).map { (places[$0], $1) }) { first, _ in first }
    }

    /// Puts back what is to be told in another transaction. A job whose records no transaction takes though it is alone fails; where several
    /// went together, each of those that failed is first tried alone.
    private func again(_ settlings: [Settling], because reasons: [OffsetLedger.Entry: KafkaError]) async {
        if settlings.count == 1, let reason = reasons[settlings[0].entry] { return settlings[0].fail(reason) }
        queue.putBack(
            settlings.map { settling in
                var settling = settling
                settling.isSuspect = reasons[settling.entry] != nil
                return settling
            })
        if reasons.isEmpty { await rest() }
    }
}

extension KafkaError {
    /// Whether a record failed for its own sake: not because the transaction did, and not for a while.
    fileprivate var isOfTheRecord: Bool {
        !isRetriable && ![.purgedFromQueue, .purgedInFlight, .wrongState, .closed].contains(code)
    }
}
