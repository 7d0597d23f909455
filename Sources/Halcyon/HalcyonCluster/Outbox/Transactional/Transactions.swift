import Kafka
import Telemetry
import Threads

/// Makes transactions, one after the other, with one producer after the other: whatever fails, the transaction is over at the brokers when
/// ``run(_:offsets:of:)`` says what became of it.
actor Transactions {
    /// What became of a transaction.
    enum Outcome: Sendable {
        case committed
        /// Nothing of it will ever be seen. Records that failed for their own sake or for want of a broker, by place.
        case aborted(KafkaError, failures: [Int: KafkaError])
        /// It is over, and was to be committed: what the group has committed tells whether it is.
        case inDoubt(KafkaError, failures: [Int: KafkaError])
        /// There will be no further one.
        case over(KafkaError)
    }

    private let properties: [String: String]
    private let events: ClientEvents
    private let isNamed: Bool
    private let log: Log
    private let metrics: TransactionMetrics
    private var producer: TransactionalProducer?
    private var isClosing = false

    /// For how long one call waits for brokers that do not answer.
    private static let patience = Duration.seconds(10)

    /// - Parameters:
    ///   - properties: librdkafka's, with a `transactional.id`.
    ///   - isNamed: whether somebody else may take over that id: then whoever is fenced has lost it.
    init(
        _ properties: [String: String], isNamed: Bool, events: ClientEvents, log: Log, metrics: TransactionMetrics
    ) {
        self.properties = properties
        self.events = events
        self.isNamed = isNamed
        self.log = log
        self.metrics = metrics
    }

    /// Takes the transactional id over, and waits for brokers that are away.
    /// - Throws: ``KafkaError`` when there is nothing to wait for.
    func open() async throws(KafkaError) {
        var backoff = Backoff.kafka
        while true {
            if isClosing { throw Self.closed }
            let producer = try TransactionalProducer(properties: properties, events: events)
            do throws(TransactionError) {
                try await initialize(producer)
                self.producer = producer
                return
            } catch {
                await producer.close()
                if Self.hopeless.contains(error.cause.code) { throw error.cause }
                if error.kind == .fenced, isNamed { throw Self.replaced(error) }
                log.warning("transactions not initialized", ["error": "\(error)"])
            }
            await Task.sleepUnlessCancelled(for: backoff.next())
        }
    }

    private func initialize(_ producer: TransactionalProducer) async throws(TransactionError) {
        while true {
            do throws(TransactionError) {
                return try await producer.initialize(within: .seconds(2))
            } catch {
                guard error.kind == .retriable, !isClosing else { throw error }
            }
        }
    }

    /// What no other producer would do better.
    private static let hopeless: Set<KafkaError.Code> = [
        .unsupported, .transactionsNotAllowed, .invalidTransactionTimeout, .invalidArgument,
    ]

    private static let closed = KafkaError(code: .closed, message: "the worker is closed")

    private static func replaced(_ error: TransactionError) -> KafkaError {
        KafkaError(
            code: error.cause.code,
            message: "another worker has this one's name (worker.instance): \(error.cause.message)",
            isFatal: true)
    }

    /// Commits records and offsets together.
    /// - Parameter membership: read before the offsets were.
    func run(
        _ records: [ProducerRecord], offsets: [TopicPartition: GroupOffset], of membership: GroupMembership
    ) async -> Outcome {
        guard let producer, !isClosing else { return .over(Self.closed) }
        var sends: TransactionSends?
        var isCommitting = false
        do throws(TransactionError) {
            try await producer.begin()
            let sent = await producer.send(records)
            sends = sent
            if sent.hasFailures {
                throw TransactionError(
                    .abortable, KafkaError(code: .wrongState, message: "a record was not taken by librdkafka"))
            }
            if !offsets.isEmpty { try await producer.sendOffsets(offsets, of: membership) }
            isCommitting = true
            try await producer.commit(within: Self.patience)
            metrics.committed.add()
            return .committed
        } catch {
            log.warning(
                isCommitting ? "transaction not committed" : "transaction aborted",
                ["error": "\(error)", "kind": "\(error.kind)"])
            let end = await settle(producer, error)
            // Where the producer failed, the brokers refuse its records with it, whatever is in them.
            let failures = error.kind == .abortable ? await sends?.failures() ?? [:] : [:]
            if let end { return .over(end) }
            return isCommitting
                ? .inDoubt(error.cause, failures: failures) : .aborted(error.cause, failures: failures)
        }
    }

    /// Has the failed transaction ended at the brokers.
    /// - Returns: why there will be no further one; else nil.
    private func settle(_ producer: TransactionalProducer, _ error: TransactionError) async -> KafkaError? {
        var error = error
        if error.kind == .abortable || error.kind == .retriable {
            do throws(TransactionError) {
                try await producer.abort(within: Self.patience)
                metrics.aborted.add()
                return nil
            } catch let other {
                log.warning("transaction not aborted", ["error": "\(other)", "kind": "\(other.kind)"])
                error = other
            }
        }
        self.producer = nil
        await producer.close()
        if error.kind == .fenced, isNamed { return Self.replaced(error) }
        metrics.replaced.add()
        do throws(KafkaError) {
            // Ends what the one before has left.
            try await open()
            return nil
        } catch {
            return error
        }
    }

    /// Brokers that are away are waited for no more.
    func stopWaiting() { isClosing = true }

    /// Ends the producer, when no transaction is under way.
    func close() async {
        isClosing = true
        await producer?.close()
        producer = nil
    }
}

/// What is counted of transactions.
struct TransactionMetrics: Sendable {
    /// Transactions that were committed.
    let committed: Counter
    /// Transactions that were aborted and begun again.
    let aborted: Counter
    /// Producers that could do nothing more and were replaced.
    let replaced: Counter
    /// Jobs that ended in committed transactions.
    let jobs: Counter

    init(_ metrics: Metrics) {
        committed = metrics.counter(
            "halcyon_transactions_committed_total", help: "Transactions of events and offsets that were committed.")
        aborted = metrics.counter(
            "halcyon_transactions_aborted_total",
            help: "Transactions that were aborted; what they told is told in others, by whoever has the jobs then.")
        replaced = metrics.counter(
            "halcyon_transactional_producers_replaced_total",
            help: "Transactional producers that failed, or whose transaction had an unknown outcome.")
        jobs = metrics.counter(
            "halcyon_transaction_jobs_total", help: "Jobs that ended in committed transactions.")
    }
}

/// How events and offsets are committed together.
public struct TransactionOptions: Sendable {
    /// For how long a job that has ended waits for others to be committed with it. While a transaction is under way they gather anyway.
    public var linger = Duration.milliseconds(10)
    /// Jobs of one transaction, at most.
    public var batch = 5000
    /// The worker's own name, under which no other runs: whoever takes it over ends the one before, and its open transaction at once. Nil for
    /// a random one, that no other has.
    public var instance: String?
    /// The defaults.
    public init() {}
}
