import CRdKafka
import Concurrency

/// A producer that sends records and commits offsets of a consumer group atomically (KIP-98, KIP-447).
///
/// Only one transaction can be open at a time: ``begin()``, ``send(_:)`` and ``sendOffsets(_:of:)`` any number of
/// times, then ``commit(within:)`` or ``abort(within:)``. Consumers with `isolation.level=read_committed` see all of it
/// or nothing.
///
/// Calls block in librdkafka on a dedicated thread. Call ``close()`` before releasing the last reference.
public actor TransactionalProducer {
    private let loop: EventLoop
    /// The producer's thread.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    private let producer: Producer

    /// Creates a producer.
    /// - Parameters:
    ///   - properties: librdkafka properties; `transactional.id` is required. A new producer fences earlier ones with
    ///     the same id.
    ///   - events: Callbacks for logs and for lost and restored connections.
    /// - Throws: ``KafkaError`` that names the invalid property.
    public init(properties: [String: String], events: ClientCallbacks = ClientCallbacks()) throws(KafkaError) {
        guard properties["transactional.id"]?.isEmpty == false else {
            throw KafkaError(code: .invalidArgument, message: "property transactional.id: required for transactions")
        }
        producer = try Producer(properties: properties, events: events)
        loop = EventLoop(name: "kafka-transactions")
    }

    deinit {
        let loop = loop
        _ = NamedThread(name: "kafka-stop") { loop.stop() }
    }

    // MARK: Transactions

    /// Acquires the transactional id: aborts a transaction that an earlier producer left open, completes one whose
    /// commit had begun, and fences that producer. Call this first, and again as long as it throws a retriable error.
    /// - Throws: ``TransactionError``; `fatal` with ``KafkaError/Code/unsupported`` if the brokers have no
    ///   transactions. That includes a ``MockCluster``, which only pretends to have them.
    public func initialize(within limit: Duration) throws(TransactionError) {
        try call { rd_kafka_init_transactions($0, limit.milliseconds) }
        let isMock = try use { $0.isMock(Deadline(limit)) }
        if isMock {
            throw TransactionError(
                .fatal, KafkaError(code: .unsupported, message: "librdkafka's mock cluster has no transactions"))
        }
    }

    /// Begins a transaction.
    /// - Throws: ``TransactionError``.
    public func begin() throws(TransactionError) {
        try call { rd_kafka_begin_transaction($0) }
    }

    /// Adds records to the transaction without waiting for them. ``commit(within:)`` waits, and fails if a record
    /// failed.
    /// - Returns: The results of the records, complete at the latest when the transaction has been committed or
    ///   aborted.
    public func send(_ records: [ProducerRecord]) -> TransactionBatch {
        let sends = TransactionBatch(count: records.count)
        for (index, record) in records.enumerated() {
            producer.enqueue(record) { attempt in
                if case .failed(let error) = attempt { sends.ended(index, error) } else { sends.ended(index, nil) }
            }
        }
        return sends
    }

    /// Adds offsets (the next to read) to the transaction. They are committed with it.
    /// - Parameter membership: The consumer's membership, read before checking which partitions it owns.
    /// - Throws: ``TransactionError``: `abortable` with ``KafkaError/Code/illegalGeneration`` or
    ///   ``KafkaError/Code/unknownMember`` if the group has rebalanced since.
    public func sendOffsets(
        _ offsets: [TopicPartition: GroupOffset], of membership: GroupMembership
    ) throws(TransactionError) {
        guard offsets.values.allSatisfy(\.hasPlainMetadata) else {
            throw TransactionError(.abortable, GroupOffset.metadataIsNotPlain)
        }
        let list = PartitionList(offsets)
        // Without an explicit timeout, retries last for the rest of the transaction's time.
        try call { rd_kafka_send_offsets_to_transaction($0, list.pointer, membership.pointer, -1) }
    }

    /// Waits for all records and commits the transaction. If librdkafka gets no response in time, the call is repeated,
    /// which resumes the commit, until `limit` has passed.
    /// - Throws: ``TransactionError``. Only an `abortable` error caused by a record guarantees that nothing was
    ///   committed. To find out otherwise, read the group's committed offsets after the transaction was aborted or a
    ///   new producer was initialized.
    public func commit(within limit: Duration) throws(TransactionError) {
        do throws(TransactionError) {
            try again(for: limit) { rd_kafka_commit_transaction($0, -1) }
        } catch {
            throw error.kind == .retriable ? TransactionError(.outcomeUnknown, error.cause) : error
        }
    }

    /// Aborts the transaction. Its records are never visible to consumers with read_committed isolation.
    /// - Throws: ``TransactionError``: another producer with the same id must abort the transaction then.
    public func abort(within limit: Duration) throws(TransactionError) {
        // An abort that overtakes the first records is rejected because the brokers do not know the transaction yet
        // (seen with 2.0.2).
        _ = try use { rd_kafka_flush($0.pointer, min(limit, .milliseconds(500)).milliseconds) }
        try again(for: limit) { rd_kafka_abort_transaction($0, -1) }
    }

    /// Closes the producer. An open transaction stays open until a producer with the same id is initialized or
    /// `transaction.timeout.ms` has passed. A second call returns immediately.
    public func close() async { await producer.close(flushingFor: .zero) }

    // MARK: Calls

    private func again(
        for limit: Duration, _ body: (OpaquePointer) -> OpaquePointer?
    ) throws(TransactionError) {
        let end = ContinuousClock.now + limit
        while true {
            do throws(TransactionError) {
                return try call(body)
            } catch {
                guard error.kind == .retriable, .now < end else { throw error }
            }
        }
    }

    private func call(_ body: (OpaquePointer) -> OpaquePointer?) throws(TransactionError) {
        let failure = try use { client in
            body(client.pointer).map { TransactionError(consuming: $0, of: client.pointer) }
        }
        if let failure { throw failure }
    }

    private func use<Success>(_ body: (Client) -> Success) throws(TransactionError) -> Success {
        do throws(KafkaError) {
            return try producer.client.use { (client) throws(KafkaError) in body(client) }
        } catch {
            throw TransactionError(.fatal, error)
        }
    }
}

/// An error of a ``TransactionalProducer``, with the action that it requires.
public struct TransactionError: Error, Hashable, CustomStringConvertible {
    /// The required action.
    public enum Kind: Hashable, Sendable {
        /// The call may be repeated with the same arguments.
        case retriable
        /// The transaction must be aborted. Another may then begin.
        case abortable
        /// The outcome of a commit is unknown. Close this producer, and let another one with the same transactional id
        /// resolve it (``TransactionalProducer/initialize(within:)``).
        case outcomeUnknown
        /// A newer producer has the same transactional id, or the brokers have ended a transaction that exceeded
        /// `transaction.timeout.ms`. This producer is unusable.
        case fenced
        /// This producer is unusable.
        case fatal
    }

    /// The required action.
    public let kind: Kind
    /// The underlying error.
    public let cause: KafkaError

    /// The text of the underlying error.
    public var description: String { "\(cause)" }

    /// Creates an error, for tests and test doubles.
    public init(_ kind: Kind, _ cause: KafkaError) {
        self.kind = kind
        self.cause = cause
    }

    /// Creates an error from a librdkafka error object, which it destroys.
    init(consuming error: OpaquePointer, of client: OpaquePointer) {
        // The original error is more specific than "the producer has failed before".
        var reason = [CChar](repeating: 0, count: 512)
        let isFatal = rd_kafka_error_is_fatal(error) != 0
        let first = isFatal ? rd_kafka_fatal_error(client, &reason, reason.count) : RD_KAFKA_RESP_ERR_NO_ERROR
        let requiresAbort = rd_kafka_error_txn_requires_abort(error) != 0
        let cause = KafkaError(consuming: error)
        self.cause =
            first == RD_KAFKA_RESP_ERR_NO_ERROR
            ? cause : KafkaError(code: KafkaError.Code(first), message: text(reason), isFatal: true)
        kind =
            if requiresAbort {
                .abortable
            } else if Self.fencing.contains(self.cause.code) {
                .fenced
            } else if !isFatal && cause.isRetriable {
                .retriable
            } else {
                // librdkafka recommends this for errors that are neither.
                .fatal
            }
    }

    private static let fencing = Set(
        [RD_KAFKA_RESP_ERR__FENCED, RD_KAFKA_RESP_ERR_PRODUCER_FENCED, RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH]
            .map(KafkaError.Code.init))
}

/// A group of records that were added to a transaction together, with their results.
public final class TransactionBatch: Sendable {
    private struct State {
        var left: Int
        var failures: [Int: KafkaError] = [:]
        var waiter: CheckedContinuation<Void, Never>?
    }

    private let state: Lock<State>

    init(count: Int) { state = Lock(State(left: count)) }

    func ended(_ index: Int, _ error: KafkaError?) {
        let waiter = state.withLock { state in
            state.left -= 1
            if let error { state.failures[index] = error }
            return state.left == 0 ? state.waiter.take() : nil
        }
        waiter?.resume()
    }

    /// True if some records have failed already. librdkafka rejects oversized records immediately, and the others could
    /// still be committed. Check this before the commit if the group must be complete.
    public var hasFailures: Bool { state.withLock { !$0.failures.isEmpty } }

    /// Waits for all results and returns the failures by index. They are complete at the latest when the transaction
    /// has been committed or aborted, or the producer is closed. Records discarded by an abort count as failed
    /// (``KafkaError/Code/purgedFromQueue``, ``KafkaError/Code/purgedInFlight``). Call it only once.
    public func failures() async -> [Int: KafkaError] {
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                if state.left > 0 { state.waiter = continuation }
                return state.left == 0
            }
            if isOver { continuation.resume() }
        }
        return state.withLock { $0.failures }
    }
}
