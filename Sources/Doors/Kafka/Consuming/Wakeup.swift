import CLinux
import CRdKafka
import Glibc

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
