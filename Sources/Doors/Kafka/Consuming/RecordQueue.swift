import CRdKafka

/// A queue of librdkafka that holds fetched messages of one topic. Used on one thread.
final class RecordQueue {
    let topic: String
    private let pointer: OpaquePointer
    private let wakeup: Wakeup

    /// Takes over `queue`, which from now on signals `wakeup`.
    init(_ queue: OpaquePointer, of topic: String, _ wakeup: Wakeup) {
        pointer = queue
        self.topic = topic
        self.wakeup = wakeup
        wakeup.attach(queue)
    }

    /// Up to `limit` records; fewer when the queue ran empty, after which it will signal. Errors that stand between the
    /// messages go to `failed`.
    ///
    /// One message at a time: `rd_kafka_consume_batch_queue` of 2.0.x can hand out messages of a partition that has
    /// been taken away.
    func pull(_ limit: Int, failed: (KafkaError) -> Void) -> [ConsumedRecord] {
        var records: [ConsumedRecord] = []
        while records.count < limit, let message = rd_kafka_consume_queue(pointer, 0) {
            defer { rd_kafka_message_destroy(message) }
            switch message.pointee.err {
            case RD_KAFKA_RESP_ERR_NO_ERROR:
                if records.isEmpty { records.reserveCapacity(min(limit, 64)) }
                records.append(record(message))
            case RD_KAFKA_RESP_ERR__PARTITION_EOF: break
            case let code: failed(KafkaError(code, String(cString: rd_kafka_message_errstr(message))))
            }
        }
        return records
    }

    /// Throws away what is left and gives the queue back.
    func destroy() {
        wakeup.detach(pointer)
        while let message = rd_kafka_consume_queue(pointer, 0) { rd_kafka_message_destroy(message) }
        rd_kafka_queue_destroy(pointer)
    }

    private func record(_ message: UnsafeMutablePointer<rd_kafka_message_t>) -> ConsumedRecord {
        ConsumedRecord(
            topic: topic, partition: message.pointee.partition, offset: message.pointee.offset,
            timestamp: rd_kafka_message_timestamp(message, nil),
            key: bytes(message.pointee.key, message.pointee.key_len),
            value: bytes(message.pointee.payload, message.pointee.len),
            headers: headers(message))
    }

    private func headers(_ message: UnsafeMutablePointer<rd_kafka_message_t>) -> [RecordHeader] {
        var list: OpaquePointer?
        guard rd_kafka_message_headers(message, &list) == RD_KAFKA_RESP_ERR_NO_ERROR, let list else { return [] }
        return (0..<rd_kafka_header_cnt(list)).map { index in
            var name: UnsafePointer<CChar>?
            var value: UnsafeRawPointer?
            var size = 0
            rd_kafka_header_get_all(list, index, &name, &value, &size)
            return RecordHeader(name.map { String(cString: $0) } ?? "", bytes(value, size))
        }
    }

    private func bytes(_ start: UnsafeRawPointer?, _ count: Int) -> [UInt8]? {
        start.map { [UInt8](UnsafeRawBufferPointer(start: $0, count: count)) }
    }
}
