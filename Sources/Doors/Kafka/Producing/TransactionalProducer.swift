import CRdKafka
import Threads

/// Sends records, and offsets of a consumer group, that count together or not at all (KIP-98, KIP-447).
///
/// One transaction at a time: ``begin()``, ``send(_:)`` and ``sendOffsets(_:of:)`` any number of times, then ``commit(within:)`` or
/// ``abort(within:)``. Readers with `isolation.level=read_committed` see all of it or nothing.
///
/// Calls block in librdkafka, on a thread of the producer's own. ``close()`` must be called before the last reference goes.
public actor TransactionalProducer {
    private let loop: EventLoop
    /// The producer's own thread.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    private let producer: Producer

    /// - Parameters:
    ///   - properties: librdkafka's; `transactional.id` is needed. Producers that follow each other under one id fence those before.
    ///   - events: told of logs and of lost and restored connections.
    /// - Throws: ``KafkaError`` that names the property that was refused.
    public init(properties: [String: String], events: ClientEvents = ClientEvents()) throws(KafkaError) {
        guard properties["transactional.id"]?.isEmpty == false else {
            throw KafkaError(code: .invalidArgument, message: "property transactional.id: transactions need it")
        }
        producer = try Producer(properties: properties, events: events)
        loop = EventLoop(name: "kafka-transactions")
    }

    deinit {
        let loop = loop
        _ = WorkThread(name: "kafka-stop") { loop.stop() }
    }

    // MARK: Transactions

    /// Takes the transactional id over: a transaction that an earlier producer left open is aborted, one that it had begun to commit is
    /// completed, and that producer is fenced. To be called first, and again for as long as it throws a retriable error.
    /// - Throws: ``TransactionError``; `fatal` with ``KafkaError/Code/unsupported`` when the brokers know no transactions. A ``MockCluster``
    ///   counts as such: it answers as if it did.
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

    /// Hands records over to the transaction, and does not wait for them: ``commit(within:)`` does, and fails when one of them did.
    /// - Returns: what became of them; known at the latest when the transaction has been committed or aborted.
    public func send(_ records: [ProducerRecord]) -> TransactionSends {
        let sends = TransactionSends(count: records.count)
        for (index, record) in records.enumerated() {
            producer.handOver(record) { attempt in
                if case .failed(let error) = attempt { sends.ended(index, error) } else { sends.ended(index, nil) }
            }
        }
        return sends
    }

    /// Makes offsets (the next to read) part of the transaction: they are committed with it.
    /// - Parameter membership: the consumer's, read before it was looked which partitions are its own.
    /// - Throws: ``TransactionError``: `abortable` with ``KafkaError/Code/illegalGeneration`` or ``KafkaError/Code/unknownMember`` when the
    ///   group has gone on since.
    public func sendOffsets(
        _ offsets: [TopicPartition: GroupOffset], of membership: GroupMembership
    ) throws(TransactionError) {
        guard offsets.values.allSatisfy(\.hasPlainMetadata) else {
            throw TransactionError(.abortable, GroupOffset.metadataIsNotPlain)
        }
        let list = PartitionList(offsets)
        // Without an end of its own it is tried for the time that the transaction has left.
        try call { rd_kafka_send_offsets_to_transaction($0, list.pointer, membership.pointer, -1) }
    }

    /// Waits for all records and commits the transaction. When librdkafka does not get an answer in time the call is made again, which goes
    /// on with it, until `limit` is over.
    /// - Throws: ``TransactionError``. Only after `abortable` because of a record is it sure that nothing was committed: whoever must know
    ///   reads the group's committed offsets, when the transaction was aborted or a new producer has been initialized.
    public func commit(within limit: Duration) throws(TransactionError) {
        do throws(TransactionError) {
            try again(for: limit) { rd_kafka_commit_transaction($0, -1) }
        } catch {
            throw error.kind == .retriable ? TransactionError(.outcomeUnknown, error.cause) : error
        }
    }

    /// Aborts the transaction: what it sent is never seen.
    /// - Throws: ``TransactionError``: then another producer with the same id has to do it.
    public func abort(within limit: Duration) throws(TransactionError) {
        // An abort that overtakes the first records is refused, for the brokers do not know the transaction yet (seen with 2.0.2).
        _ = try use { rd_kafka_flush($0.pointer, min(limit, .milliseconds(500)).milliseconds) }
        try again(for: limit) { rd_kafka_abort_transaction($0, -1) }
    }

    /// Ends it. A transaction that is open stays so until a producer with the same id is initialized, or `transaction.timeout.ms` has
    /// passed. A second call returns at once.
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

/// Why a call of a ``TransactionalProducer`` failed, and so what is to be done.
public struct TransactionError: Error, Hashable, CustomStringConvertible {
    /// What is to be done.
    public enum Kind: Hashable, Sendable {
        /// The same call may be made again, with the same arguments.
        case retriable
        /// The transaction is to be aborted; another may then be begun.
        case abortable
        /// It was to be committed, and nobody has said whether it is: close this producer, and let another with the same transactional id
        /// settle it (``TransactionalProducer/initialize(within:)``).
        case outcomeUnknown
        /// A newer producer has the same transactional id, or the brokers have ended a transaction that took longer than
        /// `transaction.timeout.ms`. This producer can do nothing more.
        case fenced
        /// This producer can do nothing more.
        case fatal
    }

    /// What is to be done.
    public let kind: Kind
    /// What went wrong.
    public let cause: KafkaError

    /// For messages.
    public var description: String { "\(cause)" }

    /// An error of the caller's own making, for tests and stand-ins.
    public init(_ kind: Kind, _ cause: KafkaError) {
        self.kind = kind
        self.cause = cause
    }

    /// Takes over an error object.
    init(consuming error: OpaquePointer, of client: OpaquePointer) {
        // What came first says more than "the producer has failed before".
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
                // librdkafka's advice for whatever says neither.
                .fatal
            }
    }

    private static let fencing = Set(
        [RD_KAFKA_RESP_ERR__FENCED, RD_KAFKA_RESP_ERR_PRODUCER_FENCED, RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH]
            .map(KafkaError.Code.init))
}

/// Records that were handed over to a transaction together, and what became of each.
public final class TransactionSends: Sendable {
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

    /// Whether some have failed already: librdkafka refuses at once what is too large, and then the others can be committed. Who wants all or
    /// nothing looks here before.
    public var hasFailures: Bool { state.withLock { !$0.failures.isEmpty } }

    /// What failed, by place among the records. To be asked for once: it waits until all are known, at the latest when the transaction has
    /// been committed or aborted, or the producer closed. Records that an abort took back have failed too (``KafkaError/Code/purgedFromQueue``,
    /// ``KafkaError/Code/purgedInFlight``).
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
