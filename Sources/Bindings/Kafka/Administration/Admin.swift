import CRdKafka
import Concurrency
import Glibc

/// An admin client that inspects a cluster and creates topics.
///
/// Each call runs on a dedicated thread, never on the cooperative pool, and has a timeout. Call ``close()`` before
/// releasing the last reference.
public final class Admin: Sendable {
    private let client: Client
    private let properties: [String: String]
    private let events: ClientCallbacks
    private let failure = Lock<String?>(nil)

    /// Creates an admin client.
    /// - Parameters:
    ///   - properties: librdkafka properties.
    ///   - events: Callbacks for logs.
    /// - Throws: ``KafkaError`` that names the invalid property.
    public init(properties: [String: String], events: ClientCallbacks = ClientCallbacks()) throws(KafkaError) {
        var events = events
        let log = events.log
        events.log = { [failure] level, facility, message in
            if facility == "FAIL" { failure.withLock { $0 = Self.reason(in: message) } }
            log(level, facility, message)
        }
        client = try Client(RD_KAFKA_PRODUCER, properties: properties, events: events)
        self.properties = properties
        self.events = events
    }

    /// The reason for which the latest connection to a broker failed: it was refused, or the broker rejected the
    /// credentials, the certificate or the protocol. Nil if none failed.
    public var connectionFailure: String? { failure.withLock { $0 } }

    /// Returns the reason in a line of librdkafka's log: `[thrd:NAME]: NAME: REASON (after 3ms in state CONNECT)`.
    static func reason(in message: String) -> String {
        var reason = message[...]
        for _ in 0..<2 {
            if let colon = reason.firstRange(of: ": ") { reason = reason[colon.upperBound...] }
        }
        guard let details = reason.firstRange(of: " (after ") else { return String(reason) }
        let failure = String(reason[..<details.lowerBound])
        // A broker that closes the connection need not say why.
        let isHandshake = reason[details.upperBound...].contains("in state SSL_HANDSHAKE")
        return isHandshake && !failure.contains("SSL") ? "SSL handshake failed: \(failure)" : failure
    }

    /// Closes the client. Calls in flight finish; later ones throw ``KafkaError/Code/closed``. A second call does
    /// nothing.
    public func close() async {
        await blocking { [client] in client.destroy() }
    }

    /// Creates topics, and waits until a broker knows them.
    /// - Returns: The result of each topic, by name. The mock cluster does not support this request: every topic fails
    ///   there.
    /// - Throws: ``KafkaError`` if the whole request failed or the description of a topic is invalid.
    public func create(
        _ topics: [NewTopic], within limit: Duration = .seconds(20)
    ) async throws(KafkaError) -> [String: TopicCreation] {
        try await call { (client) throws(KafkaError) in try client.create(topics, Deadline(limit)) }
    }

    /// Fetches the brokers and all topics.
    /// - Throws: ``KafkaError``, also if no broker responds in time.
    public func metadata(within limit: Duration = .seconds(10)) async throws(KafkaError) -> ClusterMetadata {
        try await call { (client) throws(KafkaError) in
            var metadata: UnsafePointer<rd_kafka_metadata>?
            let code = rd_kafka_metadata(client.pointer, 1, nil, &metadata, limit.milliseconds)
            guard code == RD_KAFKA_RESP_ERR_NO_ERROR, let metadata else { throw KafkaError(code) }
            defer { rd_kafka_metadata_destroy(metadata) }
            return ClusterMetadata(metadata.pointee)
        }
    }

    /// Fetches the low and high watermark of each partition: the oldest offset, and one past the newest.
    /// - Throws: ``KafkaError`` for the first partition whose lookup fails. `limit` covers all lookups.
    public func watermarks(
        of partitions: [TopicPartition], within limit: Duration = .seconds(10)
    ) async throws(KafkaError) -> [TopicPartition: Range<Int64>] {
        try await call { (client) throws(KafkaError) in
            let deadline = Deadline(limit)
            var watermarks: [TopicPartition: Range<Int64>] = [:]
            for partition in partitions { watermarks[partition] = try client.watermarks(of: partition, deadline) }
            return watermarks
        }
    }

    /// Fetches the committed offsets of a group. Partitions without a commit are left out. The group may be empty.
    /// - Throws: ``KafkaError``.
    public func committed(
        by group: String, in partitions: [TopicPartition], within limit: Duration = .seconds(10)
    ) async throws(KafkaError) -> [TopicPartition: GroupOffset] {
        if partitions.isEmpty { return [:] }
        return try await call { [properties, events] (_) throws(KafkaError) in
            // Uses a consumer that joins no group. librdkafka's admin request for this crashes if the group's
            // coordinator is not available yet, up to 2.10 at least (its issue 5040).
            let consumer = try Client(
                RD_KAFKA_CONSUMER, properties: properties,
                enforced: ["group.id": group, "enable.auto.commit": "false"], events: events)
            defer { consumer.destroy() }
            return try consumer.committed(in: partitions, Deadline(limit))
        }
    }

    private func call<Success: Sendable>(
        _ body: @escaping @Sendable (Client) throws(KafkaError) -> Success
    ) async throws(KafkaError) -> Success {
        try await blocking { [client] () throws(KafkaError) in try client.use(body) }
    }
}

// All of these calls block. Run them in `blocking`.
extension Client {
    func create(_ topics: [NewTopic], _ deadline: Deadline) throws(KafkaError) -> [String: TopicCreation] {
        if topics.isEmpty { return [:] }
        var wanted: [OpaquePointer?] = []
        defer { rd_kafka_NewTopic_destroy_array(&wanted, wanted.count) }
        for topic in topics { wanted.append(try newTopic(topic)) }

        let event = try request(RD_KAFKA_ADMIN_OP_CREATETOPICS, deadline) { options, queue in
            rd_kafka_CreateTopics(pointer, &wanted, wanted.count, options, queue)
        }
        defer { rd_kafka_event_destroy(event) }
        var count = 0
        let results = rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &count)
        var creations: [String: TopicCreation] = [:]
        for result in UnsafeBufferPointer(start: results, count: count) {
            let name = String(cString: rd_kafka_topic_result_name(result))
            switch rd_kafka_topic_result_error(result) {
            case RD_KAFKA_RESP_ERR_NO_ERROR: creations[name] = .created
            case RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS: creations[name] = .existed
            case let code:
                let reason = rd_kafka_topic_result_error_string(result).map { String(cString: $0) }
                creations[name] = .failed(KafkaError(code, reason.map { "topic \(name): \($0)" }))
            }
        }
        awaitSight(of: creations.filter { $0.value == .created }.keys, deadline)
        return creations
    }

    /// The controller reports "created" before the brokers know the topic (KRaft propagates metadata asynchronously).
    /// Until then, clients would get an unknown-topic error.
    private func awaitSight(of topics: some Sequence<String>, _ deadline: Deadline) {
        for topic in topics {
            // The loop waits until there is no error.
            while deadline.left > 1, (try? watermarks(of: topic, deadline)) == nil { usleep(20_000) }
        }
    }

    /// Sends an admin request and waits for its event, which the caller destroys.
    private func request(
        _ operation: rd_kafka_admin_op_t, _ deadline: Deadline,
        _ send: (_ options: OpaquePointer?, _ queue: OpaquePointer?) -> Void
    ) throws(KafkaError) -> OpaquePointer {
        let options = rd_kafka_AdminOptions_new(pointer, operation)
        defer { rd_kafka_AdminOptions_destroy(options) }
        let queue = rd_kafka_queue_new(pointer)
        defer { rd_kafka_queue_destroy(queue) }
        rd_kafka_AdminOptions_set_request_timeout(options, deadline.left, nil, 0)
        send(options, queue)
        // librdkafka times the request out itself. The extra second lets it report that.
        guard let event = rd_kafka_queue_poll(queue, deadline.left + 1000) else {
            throw KafkaError(RD_KAFKA_RESP_ERR__TIMED_OUT)
        }
        let code = rd_kafka_event_error(event)
        if code != RD_KAFKA_RESP_ERR_NO_ERROR {
            let error = KafkaError(code, rd_kafka_event_error_string(event).map { String(cString: $0) })
            rd_kafka_event_destroy(event)
            throw error
        }
        return event
    }

    private func newTopic(_ topic: NewTopic) throws(KafkaError) -> OpaquePointer {
        var reason = [CChar](repeating: 0, count: 512)
        guard
            let made = rd_kafka_NewTopic_new(
                topic.name, Int32(clamping: topic.partitions ?? -1), Int32(clamping: topic.replication ?? -1), &reason,
                reason.count)
        else { throw KafkaError(RD_KAFKA_RESP_ERR__INVALID_ARG, "topic \(topic.name): \(text(reason))") }
        for (name, value) in topic.configuration { rd_kafka_NewTopic_set_config(made, name, value) }
        return made
    }
}

/// A topic to create.
public struct NewTopic: Hashable, Sendable {
    /// The name.
    public var name: String
    /// The number of partitions; nil for the broker's default.
    public var partitions: Int?
    /// The replication factor; nil for the broker's default.
    public var replication: Int?
    /// Topic settings (https://kafka.apache.org/documentation/#topicconfigs).
    public var configuration: [String: String]

    /// Creates a description of a topic. Omitted values use the broker's defaults.
    public init(_ name: String, partitions: Int? = nil, replication: Int? = nil, configuration: [String: String] = [:])
    {
        self.name = name
        self.partitions = partitions
        self.replication = replication
        self.configuration = configuration
    }
}

/// The result of creating a topic.
public enum TopicCreation: Hashable, Sendable {
    /// The topic was created.
    case created
    /// The topic existed already and is unchanged.
    case existed
    /// The broker rejected the topic.
    case failed(KafkaError)
}
