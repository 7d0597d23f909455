import CLinux
import CRdKafka
import Glibc

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

    /// What was pulled at once.
    struct Pull {
        var records: [ConsumedRecord] = []
        /// A partition whose end was come to, and the offset there; nothing is pulled beyond it.
        var end: (partition: Int32, offset: Int64)?
    }

    /// As many records as the credit is good for, up to `limit`; fewer at the partition's end, or when the queue ran empty, after which it
    /// will signal. Errors that stand between the messages go to `failed`.
    ///
    /// One message at a time: `rd_kafka_consume_batch_queue` of 2.0.x can hand out messages of a partition that has
    /// been taken away.
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

/// How much of a partition may be delivered: so many records, as long as there are bytes left. The last one may have more than that.
public struct Credit: Hashable, Sendable {
    /// How many.
    public var records: Int
    /// What they may weigh together, as ``ConsumedRecord/bytes`` says.
    public var bytes: Int

    /// So much.
    public init(records: Int, bytes: Int) {
        self.records = records
        self.bytes = bytes
    }

    /// Nothing.
    public static let none = Credit(records: 0, bytes: 0)

    /// Both together.
    public static func + (one: Credit, other: Credit) -> Credit {
        Credit(records: one.records + other.records, bytes: one.bytes + other.bytes)
    }

    /// Adds to it.
    public static func += (credit: inout Credit, more: Credit) { credit = credit + more }

    /// Whether another record may be delivered.
    var isGood: Bool { records > 0 && bytes > 0 }

    /// A record was delivered on it.
    mutating func spend(_ record: ConsumedRecord) {
        records -= 1
        bytes -= record.bytes
    }
}

/// An eventfd that librdkafka's queues and other threads write to, so that one loop waits for all of them.
///
/// Its owner closes it when no queue writes to it any more.
struct Wakeup: Sendable {
    let descriptor = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))

    init() { precondition(descriptor >= 0, "no eventfd: errno \(errno)") }

    func signal() {
        var one: UInt64 = 1
        _ = write(descriptor, &one, 8)
    }

    func drain() {
        var count: UInt64 = 0
        _ = read(descriptor, &count, 8)
    }

    /// From now on `queue` signals when something comes in after it was last looked into.
    func attach(_ queue: OpaquePointer) {
        var one: UInt64 = 1
        rd_kafka_queue_io_event_enable(queue, descriptor, &one, 8)
    }

    func detach(_ queue: OpaquePointer) {
        rd_kafka_queue_io_event_enable(queue, -1, nil, 0)
    }

    func close() { _ = Glibc.close(descriptor) }
}
