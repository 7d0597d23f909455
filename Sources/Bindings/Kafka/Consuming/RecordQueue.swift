import CLinux
import CRdKafka
import Glibc

/// A librdkafka queue with fetched messages of one topic. Used on one thread.
final class RecordQueue {
    let topic: String
    private let pointer: OpaquePointer
    private let wakeup: EventFD

    /// Takes ownership of `queue`, which signals `wakeup` from now on.
    init(_ queue: OpaquePointer, of topic: String, _ wakeup: EventFD) {
        pointer = queue
        self.topic = topic
        self.wakeup = wakeup
        wakeup.attach(queue)
    }

    /// The result of one pull.
    struct Pull {
        var records: [ConsumedRecord] = []
        /// The partition whose end was reached, and the offset there. Nothing is pulled beyond it.
        var end: (partition: Int32, offset: Int64)?
    }

    /// Pulls as many records as the credit allows, up to `limit`. Returns fewer at the end of the partition, or when
    /// the queue is empty; in that case the queue will signal. Errors between the messages are passed to `failed`.
    ///
    /// It pulls one message at a time, because `rd_kafka_consume_batch_queue` of 2.0.x can return messages of a revoked
    /// partition.
    func pull(_ limit: Int, on credit: inout Credit, failed: (KafkaError) -> Void) -> Pull {
        var pull = Pull()
        while credit.isGood, pull.records.count < limit, pull.end == nil,
            let message = rd_kafka_consume_queue(pointer, 0)
        {
            defer { rd_kafka_message_destroy(message) }
            switch message.pointee.err {
            case RD_KAFKA_RESP_ERR_NO_ERROR:
                if pull.records.isEmpty { pull.records.reserveCapacity(min(credit.records, limit, 64)) }
                let record = record(message)
                credit.spend(record)
                pull.records.append(record)
            case RD_KAFKA_RESP_ERR__PARTITION_EOF:
                pull.end = (message.pointee.partition, message.pointee.offset)
            case let code: failed(KafkaError(code, String(cString: rd_kafka_message_errstr(message))))
            }
        }
        return pull
    }

    /// Discards the remaining messages and destroys the queue.
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

/// Flow-control credit of a partition: records are delivered while both the record count and the byte count are
/// positive. The last record may exceed the remaining bytes.
public struct Credit: Hashable, Sendable {
    /// The number of records.
    public var records: Int
    /// The total size of the records, as in ``ConsumedRecord/bytes``.
    public var bytes: Int

    /// Creates a credit.
    public init(records: Int, bytes: Int) {
        self.records = records
        self.bytes = bytes
    }

    /// No credit.
    public static let none = Credit(records: 0, bytes: 0)

    /// The sum of two credits.
    public static func + (one: Credit, other: Credit) -> Credit {
        Credit(records: one.records + other.records, bytes: one.bytes + other.bytes)
    }

    /// Adds credit.
    public static func += (credit: inout Credit, more: Credit) { credit = credit + more }

    /// True if another record may be delivered.
    var isGood: Bool { records > 0 && bytes > 0 }

    /// Deducts a delivered record.
    mutating func spend(_ record: ConsumedRecord) {
        records -= 1
        bytes -= record.bytes
    }
}

/// An eventfd that librdkafka's queues and other threads write to, so that one event loop waits for all of them.
///
/// The owner closes it once no queue writes to it.
struct EventFD: Sendable {
    let descriptor = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))

    init() { precondition(descriptor >= 0, "cannot create an eventfd: errno \(errno)") }

    func signal() {
        var one: UInt64 = 1
        _ = write(descriptor, &one, 8)
    }

    func drain() {
        var count: UInt64 = 0
        _ = read(descriptor, &count, 8)
    }

    /// Makes `queue` signal when a message arrives after the queue was last read.
    func attach(_ queue: OpaquePointer) {
        var one: UInt64 = 1
        rd_kafka_queue_io_event_enable(queue, descriptor, &one, 8)
    }

    func detach(_ queue: OpaquePointer) {
        rd_kafka_queue_io_event_enable(queue, -1, nil, 0)
    }

    func close() { _ = Glibc.close(descriptor) }
}
