import CRdKafka

/// What librdkafka or a broker refused, or could not do.
public struct KafkaError: Error, Hashable, CustomStringConvertible {
    /// What went wrong: a code of librdkafka (negative) or of the Kafka protocol (positive). The set is open.
    public struct Code: RawRepresentable, Hashable, Sendable {
        /// The number in `rd_kafka_resp_err_t` and, when positive, in the Kafka protocol.
        public let rawValue: Int32
        /// Takes any number.
        public init(rawValue: Int32) { self.rawValue = rawValue }
        init(_ code: rd_kafka_resp_err_t) { rawValue = code.rawValue }

        /// An argument or a property was refused before anything was sent.
        public static let invalidArgument = Code(RD_KAFKA_RESP_ERR__INVALID_ARG)
        /// The handle is closed, or is being closed.
        public static let closed = Code(RD_KAFKA_RESP_ERR__DESTROY)
        /// The connection to a broker was lost, or there is none.
        public static let transport = Code(RD_KAFKA_RESP_ERR__TRANSPORT)
        /// No answer in the time given.
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
        /// There is no such topic or partition.
        public static let unknownTopicOrPartition = Code(RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART)
        /// The topic is there already.
        public static let topicAlreadyExists = Code(RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS)
        /// A commit came from a consumer that its group has gone on without.
        public static let illegalGeneration = Code(RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION)
        /// A commit came from somebody whom its group does not know, or no longer.
        public static let unknownMember = Code(RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID)
        /// Another member of the group has the same `group.instance.id`, and is the newer one.
        public static let fencedInstance = Code(RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID)
        /// The brokers cannot do what was asked for.
        public static let unsupported = Code(RD_KAFKA_RESP_ERR__UNSUPPORTED_FEATURE)
        /// This user may not write to the topic, or read it.
        public static let topicNotAllowed = Code(RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED)
        /// The transactional id is not this user's.
        public static let transactionsNotAllowed = Code(RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        /// `transaction.timeout.ms` is more than the brokers allow (`transaction.max.timeout.ms`).
        public static let invalidTransactionTimeout = Code(RD_KAFKA_RESP_ERR_INVALID_TRANSACTION_TIMEOUT)
        /// The call does not fit what was done before it.
        public static let wrongState = Code(RD_KAFKA_RESP_ERR__STATE)
        /// The note of a commit is longer than the broker's `offset.metadata.max.bytes`.
        public static let offsetMetadataTooLarge = Code(RD_KAFKA_RESP_ERR_OFFSET_METADATA_TOO_LARGE)

        /// librdkafka's name of the code, such as `_TRANSPORT` or `UNKNOWN_TOPIC_OR_PART`.
        public var name: String { String(cString: rd_kafka_err2name(rd_kafka_resp_err_t(rawValue))) }
    }

    /// What went wrong.
    public let code: Code
    /// What happened, for people.
    public let message: String
    /// Whether the same call may succeed later without anything being mended.
    public let isRetriable: Bool
    /// Whether the handle that threw can do nothing more: close it and make another.
    public let isFatal: Bool

    /// librdkafka's name of the code.
    public var name: String { code.name }

    /// For messages.
    public var description: String { "\(message) (\(name))" }

    /// An error of the caller's own making, for tests and stand-ins.
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

    /// Nil when the code says that nothing went wrong.
    init?(unlessNone code: rd_kafka_resp_err_t) {
        if code == RD_KAFKA_RESP_ERR_NO_ERROR { return nil }
        self.init(code)
    }

    /// Takes over an error object.
    init(consuming error: OpaquePointer) {
        defer { rd_kafka_error_destroy(error) }
        code = Code(rd_kafka_error_code(error))
        message = String(cString: rd_kafka_error_string(error))
        isFatal = rd_kafka_error_is_fatal(error) != 0
        isRetriable = !isFatal && (rd_kafka_error_is_retriable(error) != 0 || Self.passing.contains(code))
    }

    /// Codes that time mends: those the protocol guide calls retriable
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
