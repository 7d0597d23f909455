import CRdKafka

/// An error from librdkafka or a broker.
public struct KafkaError: Error, Hashable, CustomStringConvertible {
    /// A code of librdkafka (negative) or of the Kafka protocol (positive). The set is open.
    public struct Code: RawRepresentable, Hashable, Sendable {
        /// The number in `rd_kafka_resp_err_t` and, if positive, in the Kafka protocol.
        public let rawValue: Int32
        /// Creates a code from any number.
        public init(rawValue: Int32) { self.rawValue = rawValue }
        init(_ code: rd_kafka_resp_err_t) { rawValue = code.rawValue }

        /// An argument or a property is invalid. Nothing was sent.
        public static let invalidArgument = Code(RD_KAFKA_RESP_ERR__INVALID_ARG)
        /// The handle is closed or closing.
        public static let closed = Code(RD_KAFKA_RESP_ERR__DESTROY)
        /// The connection to a broker was lost, or there is none.
        public static let transport = Code(RD_KAFKA_RESP_ERR__TRANSPORT)
        /// No response in time.
        public static let timedOut = Code(RD_KAFKA_RESP_ERR__TIMED_OUT)
        /// A message was not acknowledged within `message.timeout.ms`.
        public static let messageTimedOut = Code(RD_KAFKA_RESP_ERR__MSG_TIMED_OUT)
        /// librdkafka's queue has no room (`queue.buffering.max.messages`, `queue.buffering.max.kbytes`).
        public static let queueFull = Code(RD_KAFKA_RESP_ERR__QUEUE_FULL)
        /// A message is larger than `message.max.bytes` or the topic's limit.
        public static let messageTooLarge = Code(RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE)
        /// The producer was closed before the message went out.
        public static let purgedFromQueue = Code(RD_KAFKA_RESP_ERR__PURGE_QUEUE)
        /// The producer was closed before the message was acknowledged: it may or may not be there.
        public static let purgedInFlight = Code(RD_KAFKA_RESP_ERR__PURGE_INFLIGHT)
        /// The topic or partition does not exist.
        public static let unknownTopicOrPartition = Code(RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART)
        /// The topic exists already.
        public static let topicAlreadyExists = Code(RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS)
        /// A commit came from a consumer of an earlier generation of its group.
        public static let illegalGeneration = Code(RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION)
        /// A commit came from a consumer that is not, or no longer, a member of its group.
        public static let unknownMember = Code(RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID)
        /// Another, newer member of the group has the same `group.instance.id`.
        public static let fencedInstance = Code(RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID)
        /// The brokers do not support the request.
        public static let unsupported = Code(RD_KAFKA_RESP_ERR__UNSUPPORTED_FEATURE)
        /// The user may not write to or read the topic.
        public static let topicNotAllowed = Code(RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED)
        /// The user may not use the transactional id.
        public static let transactionsNotAllowed = Code(RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        /// `transaction.timeout.ms` exceeds the maximum of the brokers (`transaction.max.timeout.ms`).
        public static let invalidTransactionTimeout = Code(RD_KAFKA_RESP_ERR_INVALID_TRANSACTION_TIMEOUT)
        /// The call is invalid in the current state.
        public static let wrongState = Code(RD_KAFKA_RESP_ERR__STATE)
        /// The metadata of a committed offset exceeds the broker's `offset.metadata.max.bytes`.
        public static let offsetMetadataTooLarge = Code(RD_KAFKA_RESP_ERR_OFFSET_METADATA_TOO_LARGE)

        /// The code's name in librdkafka, such as `_TRANSPORT` or `UNKNOWN_TOPIC_OR_PART`.
        public var name: String { String(cString: rd_kafka_err2name(rd_kafka_resp_err_t(rawValue))) }
    }

    /// The error code.
    public let code: Code
    /// A human-readable description.
    public let message: String
    /// True if the same call may succeed later without a fix.
    public let isRetriable: Bool
    /// True if the handle is unusable: close it and create another.
    public let isFatal: Bool

    /// The code's name in librdkafka.
    public var name: String { code.name }

    /// The message and the name of the code.
    public var description: String { "\(message) (\(name))" }

    /// Creates an error, for tests and test doubles.
    public init(code: Code, message: String, isFatal: Bool = false) {
        self.code = code
        self.message = message
        isRetriable = !isFatal && Self.passing.contains(code)
        self.isFatal = isFatal
    }

    init(_ code: rd_kafka_resp_err_t, _ message: String? = nil) {
        self.init(
            code: Code(code), message: message ?? String(cString: rd_kafka_err2str(code)),
            isFatal: code == RD_KAFKA_RESP_ERR__FATAL)
    }

    /// Creates an error; nil if the code means success.
    init?(unlessNone code: rd_kafka_resp_err_t) {
        if code == RD_KAFKA_RESP_ERR_NO_ERROR { return nil }
        self.init(code)
    }

    /// Creates an error from a librdkafka error object, which it destroys.
    init(consuming error: OpaquePointer) {
        defer { rd_kafka_error_destroy(error) }
        code = Code(rd_kafka_error_code(error))
        message = String(cString: rd_kafka_error_string(error))
        isFatal = rd_kafka_error_is_fatal(error) != 0
        isRetriable = !isFatal && (rd_kafka_error_is_retriable(error) != 0 || Self.passing.contains(code))
    }

    /// Codes of transient errors: those that the protocol guide calls retriable
    /// (https://kafka.apache.org/protocol#protocol_error_codes) and librdkafka's own for lost connections, full queues
    /// and missed deadlines.
    private static let passing: Set<Code> = Set(
        [
            RD_KAFKA_RESP_ERR__TRANSPORT, RD_KAFKA_RESP_ERR__TIMED_OUT, RD_KAFKA_RESP_ERR__MSG_TIMED_OUT,
            RD_KAFKA_RESP_ERR__TIMED_OUT_QUEUE, RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, RD_KAFKA_RESP_ERR__QUEUE_FULL,
            RD_KAFKA_RESP_ERR__WAIT_COORD, RD_KAFKA_RESP_ERR__RESOLVE, RD_KAFKA_RESP_ERR__RETRY,
            RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE, RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
            RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT, RD_KAFKA_RESP_ERR_REPLICA_NOT_AVAILABLE,
            RD_KAFKA_RESP_ERR_NETWORK_EXCEPTION, RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS,
            RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE, RD_KAFKA_RESP_ERR_NOT_COORDINATOR,
            RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS, RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND,
            RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS, RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART,
            RD_KAFKA_RESP_ERR_NOT_CONTROLLER, RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR,
            RD_KAFKA_RESP_ERR_UNSTABLE_OFFSET_COMMIT, RD_KAFKA_RESP_ERR_THROTTLING_QUOTA_EXCEEDED,
        ].map(Code.init))
}
