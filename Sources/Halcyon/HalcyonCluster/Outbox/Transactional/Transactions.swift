import Concurrency
import Kafka
import Telemetry

/// Runs transactions one after the other, and replaces the producer after an error. When ``run(_:offsets:of:)``
/// returns, the transaction has ended at the brokers in any case.
actor Transactions {
    /// The outcome of a transaction.
    enum Outcome: Sendable {
        case committed
        /// The transaction was aborted. The failures are those of single records, by index.
        case aborted(KafkaError, failures: [Int: KafkaError])
        /// The transaction has ended after an attempt to commit it. The committed offsets of the group tell the
        /// outcome.
        case inDoubt(KafkaError, failures: [Int: KafkaError])
        /// No further transaction is possible.
        case over(KafkaError)
    }

    private let properties: [String: String]
    private let events: ClientCallbacks
    private let isNamed: Bool
    private let log: Log
    private let metrics: TransactionMetrics
    private var producer: TransactionalProducer?
    private var isClosing = false

    /// The timeout of one call to the brokers.
    private static let timeout = Duration.seconds(10)

    /// Creates an instance without a producer.
    /// - Parameters:
    ///   - properties: the librdkafka properties, with a `transactional.id`.
    ///   - isNamed: true if another worker may acquire the same id. A fenced producer has then lost it for good.
    init(
        _ properties: [String: String], isNamed: Bool, events: ClientCallbacks, log: Log, metrics: TransactionMetrics
    ) {
        self.properties = properties
        self.events = events
        self.isNamed = isNamed
        self.log = log
        self.metrics = metrics
    }

    /// Acquires the transactional id, and retries while the brokers are unavailable.
    /// - Throws: ``KafkaError`` that a retry cannot fix.
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
                log.warning("initializing transactions failed; retrying", ["error": "\(error)"])
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

    /// The errors that a new producer cannot fix.
    private static let hopeless: Set<KafkaError.Code> = [
        .unsupported, .transactionsNotAllowed, .invalidTransactionTimeout, .invalidArgument,
    ]

    private static let closed = KafkaError(code: .closed, message: "the worker is closed")

    private static func replaced(_ error: TransactionError) -> KafkaError {
        KafkaError(
            code: error.cause.code,
            message: "another worker uses the same name (worker.instance): \(error.cause.message)",
            isFatal: true)
    }

    /// Commits records and offsets together.
    /// - Parameter membership: the membership in the group, read before the offsets.
    func run(
        _ records: [ProducerRecord], offsets: [TopicPartition: GroupOffset], of membership: GroupMembership
    ) async -> Outcome {
        guard let producer, !isClosing else { return .over(Self.closed) }
        var sends: TransactionBatch?
        var isCommitting = false
        do throws(TransactionError) {
            try await producer.begin()
            let sent = await producer.send(records)
            sends = sent
            if sent.hasFailures {
                throw TransactionError(
                    .abortable, KafkaError(code: .wrongState, message: "librdkafka rejected a record"))
            }
            if !offsets.isEmpty { try await producer.sendOffsets(offsets, of: membership) }
            isCommitting = true
            try await producer.commit(within: Self.timeout)
            metrics.committed.add()
            return .committed
        } catch {
            log.warning(
                isCommitting ? "committing a transaction failed" : "transaction failed before its commit",
                ["error": "\(error)", "kind": "\(error.kind)"])
            let end = await complete(producer, error)
            // After a failure of the producer, the brokers reject its records regardless of their contents.
            let failures = error.kind == .abortable ? await sends?.failures() ?? [:] : [:]
            if let end { return .over(end) }
            return isCommitting
                ? .inDoubt(error.cause, failures: failures) : .aborted(error.cause, failures: failures)
        }
    }

    /// Ends a failed transaction at the brokers.
    /// - Returns: the error that prevents further transactions; nil if there is none.
    private func complete(_ producer: TransactionalProducer, _ error: TransactionError) async -> KafkaError? {
        var error = error
        if error.kind == .abortable || error.kind == .retriable {
            do throws(TransactionError) {
                try await producer.abort(within: Self.timeout)
                metrics.aborted.add()
                return nil
            } catch let other {
                log.warning("aborting a transaction failed", ["error": "\(other)", "kind": "\(other.kind)"])
                error = other
            }
        }
        self.producer = nil
        await producer.close()
        if error.kind == .fenced, isNamed { return Self.replaced(error) }
        metrics.replaced.add()
        do throws(KafkaError) {
            // The new producer ends the transaction of its predecessor.
            try await open()
            return nil
        } catch {
            return error
        }
    }

    /// Stops waiting for brokers that are unavailable.
    func stopWaiting() { isClosing = true }

    /// Closes the producer. No transaction may be in progress.
    func close() async {
        isClosing = true
        await producer?.close()
        producer = nil
    }
}

/// The metrics of transactions.
struct TransactionMetrics: Sendable {
    /// Transactions that were committed.
    let committed: Counter
    /// Transactions that were aborted.
    let aborted: Counter
    /// Producers that were replaced after an error.
    let replaced: Counter
    /// Jobs that ended in committed transactions.
    let jobs: Counter

    init(_ metrics: Metrics) {
        committed = metrics.counter(
            "halcyon_transactions_committed_total", help: "Committed transactions of events and offsets.")
        aborted = metrics.counter(
            "halcyon_transactions_aborted_total",
            help: "Aborted transactions. Later ones, possibly of other workers, publish their events.")
        replaced = metrics.counter(
            "halcyon_transactional_producers_replaced_total",
            help: "Transactional producers replaced after a failure or a transaction of unknown outcome.")
        jobs = metrics.counter(
            "halcyon_transaction_jobs_total", help: "Jobs completed by committed transactions.")
    }
}

/// Settings of transactions.
public struct TransactionOptions: Sendable {
    /// The time that an ended job waits for others to be committed with it. Jobs that end during a transaction always
    /// wait for the next one.
    public var linger = Duration.milliseconds(10)
    /// The maximum number of jobs in one transaction.
    public var batch = 5000
    /// The unique name of the worker. A new worker with the same name fences the old one and ends its open transaction
    /// immediately. Nil for a random name.
    public var instance: String?
    /// Creates options with default values.
    public init() {}
}
