import CRdKafka
import Glibc

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
