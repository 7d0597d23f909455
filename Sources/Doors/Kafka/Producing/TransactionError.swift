import CRdKafka

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
