import CRdKafka
import Threads

/// Sends records.
///
/// Concurrent ``send(_:)`` calls batch by themselves: librdkafka gathers what is handed in within `linger.ms` (5) into
/// one request per broker. Measured with records of 500 bytes: 340,000 a CPU-second from 200 tasks, 450,000 from 2,000.
///
/// Set `enable.idempotence=true` to have no record twice and the order of each partition kept over retries.
///
/// ``close(flushingFor:)`` must be called before the last reference goes.
public final class Producer: Sendable {
    let client: Client
    private let admission = Lock(Admission())
    private let topics: TopicHandles
    private let poller = Lock<WorkThread?>(nil)
    /// Delivery reports and errors.
    private let queue: SendablePointer
    private let onFatal: @Sendable (KafkaError) -> Void

    /// - Parameters:
    ///   - properties: librdkafka's (https://github.com/confluentinc/librdkafka/blob/master/CONFIGURATION.md).
    ///   - events: told of logs and of lost and restored connections.
    ///   - onFatal: called when nothing can be sent any more, on the polling thread: an idempotent producer whose records have lost their
    ///     order, as when a broker forgot what it had acknowledged, would break its promise if it went on.
    /// - Throws: ``KafkaError`` that names the property that was refused.
    public init(
        properties: [String: String], events: ClientEvents = ClientEvents(),
        onFatal: @escaping @Sendable (KafkaError) -> Void = { _ in }
    ) throws(KafkaError) {
        self.onFatal = onFatal
        client = try Client(
            RD_KAFKA_PRODUCER, properties: properties, eventMask: RD_KAFKA_EVENT_DR | RD_KAFKA_EVENT_ERROR,
            events: events)
        topics = TopicHandles(client)
        queue = SendablePointer(rd_kafka_queue_get_main(client.pointer))
        let thread = WorkThread(name: "kafka-producer") { self.poll() }
        poller.withLock { $0 = thread }
    }

    /// Sends a record and waits until the brokers have it (as many as `acks` says).
    ///
    /// When librdkafka's queue is full (`queue.buffering.max.messages`, `queue.buffering.max.kbytes`) it waits for
    /// room. Cancelling the task changes nothing: what was handed in cannot be taken back.
    /// - Parameter latest: after that it is not handed in any more.
    /// - Throws: ``KafkaError``: ``KafkaError/Code/messageTimedOut`` when no broker took it within
    ///   `message.timeout.ms`, ``KafkaError/Code/messageTooLarge``, ``KafkaError/Code/queueFull`` when there was no room before
    ///   `latest`, ``KafkaError/Code/closed``, …
    @discardableResult
    public func send(
        _ record: ProducerRecord, by latest: ContinuousClock.Instant? = nil
    ) async throws(KafkaError) -> Delivery {
        while true {
            if let latest, .now > latest {
                // Another one has the room that this one was woken for.
                admission.withLock { $0.passOn() }?.resume()
                throw KafkaError(code: .queueFull, message: "it could not be handed in before it was too late")
            }
            let attempt = await withCheckedContinuation { continuation in
                handOver(record) { continuation.resume(returning: $0) }
            }
            switch attempt {
            case .delivered(let delivery): return delivery
            case .failed(let error) where error.code == .queueFull: await room()
            case .failed(let error): throw error
            }
        }
    }

    /// Sends records and waits until each is delivered or has failed. A full queue is not waited for.
    /// - Returns: the errors, in the order of the records; nil for a record that the brokers have.
    public func send(all records: [ProducerRecord]) async -> [KafkaError?] {
        if records.isEmpty { return [] }
        return await withCheckedContinuation { continuation in
            let batch = Batch(records.count, continuation)
            for (index, record) in records.enumerated() { handOver(record) { batch.finish(index, $0) } }
        }
    }

    /// Records that were handed in together.
    private final class Batch: Sendable {
        private let state: Lock<(open: Int, errors: [KafkaError?])>
        private let continuation: CheckedContinuation<[KafkaError?], Never>

        init(_ count: Int, _ continuation: CheckedContinuation<[KafkaError?], Never>) {
            state = Lock((count, Array(repeating: nil, count: count)))
            self.continuation = continuation
        }

        func finish(_ index: Int, _ attempt: Attempt) {
            let errors: [KafkaError?]? = state.withLock { state in
                if case .failed(let error) = attempt { state.errors[index] = error }
                state.open -= 1
                return state.open == 0 ? state.errors : nil
            }
            if let errors { continuation.resume(returning: errors) }
        }
    }

    /// Waits until everything handed in so far is delivered or has failed.
    /// - Throws: ``KafkaError/Code/timedOut`` when that takes longer than `limit`.
    public func flush(within limit: Duration) async throws(KafkaError) {
        let code = try await blocking { [client] () throws(KafkaError) in
            try client.use { rd_kafka_flush($0.pointer, limit.milliseconds) }
        }
        if code != RD_KAFKA_RESP_ERR_NO_ERROR {
            throw KafkaError(code, "not everything was delivered within \(limit)")
        }
    }

    /// Gives what is on its way `limit` to be delivered, fails the rest (``KafkaError/Code/purgedFromQueue``,
    /// ``KafkaError/Code/purgedInFlight``), resumes every sender and ends. A second call returns at once.
    public func close(flushingFor limit: Duration = .seconds(5)) async {
        guard let poller = poller.withLock({ $0.take() }) else { return }
        await blocking { [self] in
            for waiter in admission.withLock({ $0.stopAdmitting() }) { waiter.resume() }
            rd_kafka_flush(client.pointer, limit.milliseconds)
            admission.withLock { $0.giveUp() }
            rd_kafka_queue_yield(queue.value)
            poller.join()
            rd_kafka_queue_destroy(queue.value)
            topics.destroy()
            client.destroy()
        }
    }

    // MARK: Sending

    enum Attempt: Sendable {
        case delivered(Delivery)
        case failed(KafkaError)
    }

    /// A send that librdkafka has: it travels as the message's opaque pointer and comes back once, with the delivery
    /// report.
    private final class Pending: Sendable {
        let answer: @Sendable (Attempt) -> Void
        init(_ answer: @escaping @Sendable (Attempt) -> Void) { self.answer = answer }
    }

    /// Puts a record into librdkafka's queue, and does not wait.
    /// - Parameter answer: called once: here and now when the record is refused, else on the polling thread when it is known what became
    ///   of it. It must not block.
    func handOver(_ record: ProducerRecord, _ answer: @escaping @Sendable (Attempt) -> Void) {
        guard admission.withLock({ $0.admit() }) else {
            return answer(.failed(KafkaError(code: .closed, message: "the producer is closed")))
        }
        let pending = Unmanaged.passRetained(Pending(answer))
        guard let error = produce(record, opaque: pending.toOpaque()) else { return }
        // Refused: there will be no delivery report.
        pending.release()
        admission.withLock { $0.withdraw() }
        answer(.failed(error))
    }

    private func produce(_ record: ProducerRecord, opaque: UnsafeMutableRawPointer) -> KafkaError? {
        guard let topic = topics.handle(of: record.topic) else {
            return KafkaError(
                rd_kafka_last_error(),
                "topic \(record.topic): \(String(cString: rd_kafka_err2str(rd_kafka_last_error())))")
        }
        let headers = record.headers.isEmpty ? nil : headers(record.headers)
        let error = withUnsafeTemporaryAllocation(of: rd_kafka_vu_t.self, capacity: 8) { arguments in
            record.key.withBytes { key in
                record.value.withBytes { value in
                    var count = 0
                    func add(_ type: rd_kafka_vtype_t, _ fill: (inout rd_kafka_vu_t) -> Void) {
                        var argument = rd_kafka_vu_t()
                        argument.vtype = type
                        fill(&argument)
                        arguments.initializeElement(at: count, to: argument)
                        count += 1
                    }
                    add(RD_KAFKA_VTYPE_RKT) { $0.u.rkt = topic }
                    add(RD_KAFKA_VTYPE_MSGFLAGS) { $0.u.i = RD_KAFKA_MSG_F_COPY }
                    add(RD_KAFKA_VTYPE_OPAQUE) { $0.u.ptr = opaque }
                    if let partition = record.partition { add(RD_KAFKA_VTYPE_PARTITION) { $0.u.i32 = partition } }
                    if let timestamp = record.timestamp { add(RD_KAFKA_VTYPE_TIMESTAMP) { $0.u.i64 = timestamp } }
                    if let key { add(RD_KAFKA_VTYPE_KEY) { $0.u.mem = .init(ptr: key.pointer, size: key.count) } }
                    if let value {
                        add(RD_KAFKA_VTYPE_VALUE) { $0.u.mem = .init(ptr: value.pointer, size: value.count) }
                    }
                    if let headers { add(RD_KAFKA_VTYPE_HEADERS) { $0.u.headers = headers } }
                    return rd_kafka_produceva(client.pointer, arguments.baseAddress, count)
                }
            }
        }
        guard let error else { return nil }
        if let headers { rd_kafka_headers_destroy(headers) }  // librdkafka takes them only when it takes the message
        return KafkaError(consuming: error)
    }

    private func headers(_ headers: [RecordHeader]) -> OpaquePointer {
        let list = rd_kafka_headers_new(headers.count)!
        for header in headers {
            header.value.withBytes { value in
                _ = rd_kafka_header_add(list, header.name, -1, value?.pointer, value?.count ?? 0)
            }
        }
        return list
    }

    private func room() async {
        await withCheckedContinuation { continuation in
            if !admission.withLock({ $0.wait(continuation) }) { continuation.resume() }
        }
    }

    // MARK: The polling thread

    private func poll() {
        var nextLook = ContinuousClock.now
        while true {
            if let event = rd_kafka_queue_poll(queue.value, 200) { serve(event) }
            let (hasEnded, isGivingUp) = admission.withLock { ($0.hasEnded, $0.isGivingUp) }
            if hasEnded { return }
            // Again and again, for a send may have been on its way in when the producer was closed.
            if isGivingUp { rd_kafka_purge(client.pointer, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT) }
            if case let now = ContinuousClock.now, now >= nextLook {
                client.watchConnection()
                nextLook = now + .seconds(1)
            }
        }
    }

    private func serve(_ event: OpaquePointer) {
        var reports = 0
        switch rd_kafka_event_type(event) {
        case RD_KAFKA_EVENT_DR: reports = report(event)
        case RD_KAFKA_EVENT_ERROR:
            if let error = client.absorb(error: event) {
                client.log(error)
                if error.isFatal { onFatal(error) }
            }
        default: break
        }
        rd_kafka_event_destroy(event)
        // Only now is there room: the messages go with their event.
        for waiter in admission.withLock({ $0.finish(reports) }) { waiter.resume() }
    }

    /// Resumes the senders that the event is about and counts them.
    private func report(_ event: OpaquePointer) -> Int {
        var count = 0
        while let message = rd_kafka_event_message_next(event) {
            let pending = Unmanaged<Pending>.fromOpaque(message.pointee._private).takeRetainedValue()
            let isDelivered = message.pointee.err == RD_KAFKA_RESP_ERR_NO_ERROR
            pending.answer(
                isDelivered
                    ? .delivered(Delivery(partition: message.pointee.partition, offset: message.pointee.offset))
                    : .failed(KafkaError(message.pointee.err)))
            count += 1
        }
        return count
    }
}

/// librdkafka's topic handles by name, kept so that sending does not look them up under librdkafka's lock each time.
final class TopicHandles: Sendable {
    private let client: Client
    private let known = Lock<[String: OpaquePointer]>([:])

    init(_ client: Client) { self.client = client }

    /// The handle; nil when the name is refused (`rd_kafka_last_error` says why).
    func handle(of topic: String) -> OpaquePointer? {
        let found = known.withLock { known -> SendablePointer? in
            if let handle = known[topic] { return SendablePointer(handle) }
            guard let handle = rd_kafka_topic_new(client.pointer, topic, nil) else { return nil }
            known[topic] = handle
            return SendablePointer(handle)
        }
        return found?.value
    }

    /// Gives all back; nobody sends any more.
    func destroy() {
        known.withLock { known in
            for handle in known.values { rd_kafka_topic_destroy(handle) }
            known = [:]
        }
    }
}

extension Optional<[UInt8]> {
    /// The bytes as C wants them: nil for nil, and a pointer that is not null for an empty array, for null means "no
    /// value".
    func withBytes<Result>(_ body: ((pointer: UnsafeMutableRawPointer, count: Int)?) -> Result) -> Result {
        guard let bytes = self else { return body(nil) }
        if bytes.isEmpty {
            var byte: UInt8 = 0
            return withUnsafeMutableBytes(of: &byte) { body(($0.baseAddress!, 0)) }
        }
        return bytes.withUnsafeBytes { body((UnsafeMutableRawPointer(mutating: $0.baseAddress!), $0.count)) }
    }
}
