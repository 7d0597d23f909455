import CRdKafka
import Glibc
import Threads

/// Looks at a cluster and makes topics.
///
/// Each call runs on a thread of its own, never on the cooperative pool, and gives up after its time. ``close()`` must
/// be called before the last reference goes.
public final class Admin: Sendable {
    private let client: Client
    private let properties: [String: String]
    private let events: ClientEvents

    /// - Parameters:
    ///   - properties: librdkafka's.
    ///   - events: told of logs.
    /// - Throws: ``KafkaError`` that names the property that was refused.
    public init(properties: [String: String], events: ClientEvents = ClientEvents()) throws(KafkaError) {
        client = try Client(RD_KAFKA_PRODUCER, properties: properties, events: events)
        self.properties = properties
        self.events = events
    }

    /// Ends it; calls under way are finished, later ones throw ``KafkaError/Code/closed``. A second call does nothing.
    public func close() async {
        await blocking { [client] in client.destroy() }
    }

    /// Makes topics, and waits until a broker knows them.
    /// - Returns: what became of each, by name. The mock cluster does not know this request: every topic fails there.
    /// - Throws: ``KafkaError`` when the request as a whole failed or a topic's description was refused.
    public func create(
        _ topics: [NewTopic], within limit: Duration = .seconds(20)
    ) async throws(KafkaError) -> [String: TopicCreation] {
        try await call { (client) throws(KafkaError) in try client.create(topics, Deadline(limit)) }
    }

    /// The brokers and all topics.
    /// - Throws: ``KafkaError``, also when no broker answers in time.
    public func metadata(within limit: Duration = .seconds(10)) async throws(KafkaError) -> ClusterMetadata {
        try await call { (client) throws(KafkaError) in
            var metadata: UnsafePointer<rd_kafka_metadata>?
            let code = rd_kafka_metadata(client.pointer, 1, nil, &metadata, limit.milliseconds)
            guard code == RD_KAFKA_RESP_ERR_NO_ERROR, let metadata else { throw KafkaError(code) }
            defer { rd_kafka_metadata_destroy(metadata) }
            return ClusterMetadata(metadata.pointee)
        }
    }

    /// The oldest offset and one past the newest of each partition.
    /// - Throws: ``KafkaError`` for the first partition that cannot be looked up within the time for all.
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

    /// What a group has committed; partitions without a commit are left out. The group need not have members.
    /// - Throws: ``KafkaError``.
    public func committed(
        by group: String, in partitions: [TopicPartition], within limit: Duration = .seconds(10)
    ) async throws(KafkaError) -> [TopicPartition: GroupOffset] {
        if partitions.isEmpty { return [:] }
        return try await call { [properties, events] (_) throws(KafkaError) in
            // Asked by a consumer, which joins nothing. librdkafka's admin request for this is a crash when the group's
            // coordinator is not there yet, up to 2.10 at least (its issue 5040).
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

// All of this blocks: it belongs into `blocking`.
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

    /// The controller says "created" before the brokers know it (KRaft spreads metadata behind the answer). Until then
    /// the first user of a topic would be told that there is none.
    private func awaitSight(of topics: some Sequence<String>, _ deadline: Deadline) {
        for topic in topics {
            // The loop waits until there is no error.
            while deadline.left > 1, (try? watermarks(of: topic, deadline)) == nil { usleep(20_000) }
        }
    }

    /// Sends one admin request and waits for its event, which the caller destroys.
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
        // librdkafka ends the request itself; the second more is for it to say so.
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

/// A topic to be made.
public struct NewTopic: Hashable, Sendable {
    /// Its name.
    public var name: String
    /// How many partitions; nil for the broker's default.
    public var partitions: Int?
    /// How many brokers hold each; nil for the broker's default.
    public var replication: Int?
    /// Topic settings (https://kafka.apache.org/documentation/#topicconfigs).
    public var configuration: [String: String]

    /// A topic; what is left out is as the broker likes it.
    public init(_ name: String, partitions: Int? = nil, replication: Int? = nil, configuration: [String: String] = [:])
    {
        self.name = name
        self.partitions = partitions
        self.replication = replication
        self.configuration = configuration
    }
}

/// What became of a topic that was to be made.
public enum TopicCreation: Hashable, Sendable {
    /// It is there now.
    case created
    /// It was there before, and is as it was.
    case existed
    /// The broker refused it.
    case failed(KafkaError)
}
