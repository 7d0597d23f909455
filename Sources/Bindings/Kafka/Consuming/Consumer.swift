import CRdKafka
import Concurrency

/// A member of a consumer group with credit-based flow control: it delivers records only while their partition has
/// credit.
///
/// Each assigned partition has a separate queue, which is read only while the partition has credit. Holding a partition
/// back therefore needs no pause, loses no prefetched records, and does not affect the others. Meanwhile librdkafka
/// continues to prefetch into bounded queues: `queued.max.messages.kbytes` (4 MiB by default here) is per partition.
///
/// Offsets are committed only by ``commit(_:)``. Call ``close()`` at the end.
///
/// `fetch.wait.max.ms` (500 by default in librdkafka) is how long a broker may delay a response for lack of data.
/// Measured from send to delivery on loopback: Apache Kafka 4.1 takes 0.7 ms with 500 as with 10, because it responds
/// with the first byte. A value of 10 only raises the cost of an idle consumer from 0.15 % to 0.7 % of a core. The mock
/// cluster checks again only at the end of that time, so there it takes 500 ms or 10.5 ms. Therefore use the default
/// for real brokers, and 10 for the mock cluster (2 % of a core when idle).
///
/// Measured with Apache Kafka and records of 500 bytes: a million records delivered per CPU-second, with a credit of 64
/// as with one of 100,000.
public actor Consumer {
    private let loop: EventLoop
    /// The consumer's thread.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    private let client: Client
    private let handler: any ConsumerHandler
    private let wakeup = EventFD()
    private let grants = Lock<[TopicPartition: Credit]>([:])
    private let polled = Lock(ContinuousClock.now)

    /// The queue of rebalances, errors and commit results.
    private let queue: OpaquePointer
    private let assignment: PartitionAssignment
    private var commits: [Int: CheckedContinuation<KafkaError?, Never>] = [:]
    private var commitCount = 0
    private var phase = Phase.open

    private enum Phase {
        case open
        case leaving(CheckedContinuation<Void, Never>)
        case closed
    }

    /// Joins the group named by the property `group.id` and subscribes to `topics`.
    /// - Parameters:
    ///   - properties: librdkafka properties; `enable.auto.commit` and `enable.auto.offset.store` are always off.
    ///   - handler: The handler, retained until the consumer is released. Each call passes the consumer, so the handler
    ///     need not retain it.
    /// - Throws: ``KafkaError`` that names the invalid property.
    public static func start(
        topics: [String], properties: [String: String], handler: any ConsumerHandler,
        events: ClientCallbacks = ClientCallbacks()
    ) async throws(KafkaError) -> Consumer {
        let defaults = ["queued.max.messages.kbytes": "4096"]
        let client = try Client(
            RD_KAFKA_CONSUMER, properties: defaults.merging(properties) { $1 },
            enforced: [
                "enable.auto.commit": "false", "enable.auto.offset.store": "false", "enable.partition.eof": "true",
            ],
            eventMask: RD_KAFKA_EVENT_REBALANCE | RD_KAFKA_EVENT_ERROR, events: events)
        guard let queue = rd_kafka_queue_get_consumer(client.pointer) else {
            throw KafkaError(code: .invalidArgument, message: "property group.id: required for a consumer")
        }
        let consumer = Consumer(client, queue, handler)
        try await consumer.join(topics)
        return consumer
    }

    private init(_ client: Client, _ queue: sending OpaquePointer, _ handler: any ConsumerHandler) {
        loop = EventLoop(name: "kafka-consumer")
        self.client = client
        self.queue = queue
        self.handler = handler
        assignment = PartitionAssignment(client, wakeup)
    }

    deinit {
        wakeup.close()
        let loop = loop
        _ = NamedThread(name: "kafka-stop") { loop.stop() }
    }

    // MARK: Using it

    /// Grants additional credit for the delivery of a partition's records. Credit for a partition that is not assigned
    /// is ignored. May be called from anywhere, including the handler. Credit that is granted before
    /// ``ConsumerHandler/revoked(_:lost:from:)`` returns does not outlast the revocation.
    public nonisolated func addCredit(_ credit: Credit, to partition: TopicPartition) {
        if credit == .none { return }
        let isFirst = grants.withLock { grants in
            defer { grants[partition, default: .none] += credit }
            return grants.isEmpty
        }
        if isFirst { wakeup.signal() }
    }

    /// The time of the last poll. The consumer polls at least once a second, whether or not a broker is available.
    public nonisolated var lastPolled: ContinuousClock.Instant { polled.withLock { $0 } }

    /// The high watermark of each of these partitions as of the last fetches. Unknown ones are left out. It sends no
    /// request.
    public nonisolated func ends(of partitions: [TopicPartition]) -> [TopicPartition: Int64] {
        // A closed client knows none.
        let ends = try? client.use { client in
            partitions.map { partition in
                var low: Int64 = -1
                var high: Int64 = -1
                let code = rd_kafka_get_watermark_offsets(
                    client.pointer, partition.topic, partition.partition, &low, &high)
                return (partition, code == RD_KAFKA_RESP_ERR_NO_ERROR ? high : -1)
            }
        }
        return Dictionary(uniqueKeysWithValues: (ends ?? []).filter { $0.1 >= 0 })
    }

    /// Continues reading a partition from this offset. It has no effect on partitions that are not assigned or not read
    /// yet; records on their way are delivered before.
    public nonisolated func seek(_ partition: TopicPartition, to offset: Int64) {
        // A closed client reads nothing.
        try? client.use { client in
            let list = PartitionList([partition: GroupOffset(offset)])
            if let error = rd_kafka_seek_partitions(client.pointer, list.pointer, 0) { rd_kafka_error_destroy(error) }
        }
    }

    /// Commits offsets (the next to read) for the group and waits for the broker's response.
    /// - Throws: ``KafkaError``: ``KafkaError/Code/illegalGeneration`` or similar if the partition belongs to another
    ///   member by now, ``KafkaError/Code/closed``, ``KafkaError/Code/invalidArgument`` for metadata that is not ASCII.
    public func commit(_ offsets: [TopicPartition: GroupOffset]) async throws(KafkaError) {
        if case .closed = phase { throw Self.closed }
        if offsets.isEmpty { return }
        guard offsets.values.allSatisfy(\.hasPlainMetadata) else { throw GroupOffset.metadataIsNotPlain }
        let list = PartitionList(offsets)
        commitCount += 1
        let number = commitCount
        let code = rd_kafka_commit_queue(
            client.pointer, list.pointer, queue, nil, UnsafeMutableRawPointer(bitPattern: number))
        guard code == RD_KAFKA_RESP_ERR_NO_ERROR else { throw KafkaError(code) }
        if let error = await withCheckedContinuation({ commits[number] = $0 }) { throw error }
    }

    /// Fetches the group's committed offsets of these partitions. Partitions without a commit are left out.
    /// - Throws: ``KafkaError``, also if the broker does not respond within `limit`.
    public func committed(
        _ partitions: [TopicPartition], within limit: Duration = .seconds(10)
    ) async throws(KafkaError) -> [TopicPartition: GroupOffset] {
        try await blocking { [client] () throws(KafkaError) in
            try client.use { (client) throws(KafkaError) in
                let list = PartitionList(partitions)
                let code = rd_kafka_committed(client.pointer, list.pointer, limit.milliseconds)
                if code != RD_KAFKA_RESP_ERR_NO_ERROR { throw KafkaError(code) }
                let view = PartitionListView(list.pointer)!
                if let error = view.firstError { throw error }
                return view.groupOffsets
            }
        }
    }

    /// Returns the consumer's current membership of its group, for ``TransactionalProducer/sendOffsets(_:of:)``.
    /// - Throws: ``KafkaError/Code/unknownMember`` if it is not a member at the moment, ``KafkaError/Code/closed``.
    public func membership() throws(KafkaError) -> GroupMembership {
        guard case .open = phase else { throw Self.closed }
        return try GroupMembership(of: client)
    }

    /// Revokes all partitions (calls the handler's ``ConsumerHandler/revoked(_:lost:from:)`` and waits for it), leaves
    /// the group and closes the consumer. A second call returns immediately.
    public func close() async {
        guard case .open = phase else { return }
        await withCheckedContinuation { continuation in
            phase = .leaving(continuation)
            if let error = rd_kafka_consumer_close_queue(client.pointer, queue) {
                client.log(KafkaError(consuming: error))
                end(continuation)
            } else {
                wake()
            }
        }
        await blocking { [client] in client.destroy() }
    }

    private static let closed = KafkaError(code: .closed, message: "the consumer is closed")

    // MARK: On the loop

    private func join(_ topics: [String]) throws(KafkaError) {
        rd_kafka_poll_set_consumer(client.pointer)
        let list = PartitionList(topics.map { TopicPartition($0, -1) })  // RD_KAFKA_PARTITION_UA
        let code = rd_kafka_subscribe(client.pointer, list.pointer)
        if code != RD_KAFKA_RESP_ERR_NO_ERROR {
            rd_kafka_queue_destroy(queue)
            phase = .closed
            throw KafkaError(code, "cannot subscribe to \(topics): \(String(cString: rd_kafka_err2str(code)))")
        }
        loop.watch(wakeup.descriptor, for: .readable) { _ in self.assumeIsolated { $0.wake() } }
        wakeup.attach(queue)
        tick()
    }

    /// Polls the queue often enough to stay within `max.poll.interval.ms`.
    private func tick() {
        if case .closed = phase { return }
        client.watchConnection()
        wake()
        polled.withLock { $0 = .now }
        loop.schedule(after: .seconds(1)) { self.assumeIsolated { $0.tick() } }
    }

    private func wake() {
        wakeup.drain()
        serve()
        deliver()
    }

    private func serve() {
        while case .open = phase, let event = rd_kafka_queue_poll(queue, 0) { serve(event) }
        while case .leaving(let continuation) = phase {
            if let event = rd_kafka_queue_poll(queue, 0) {
                serve(event)
            } else {
                if rd_kafka_consumer_closed(client.pointer) != 0 { end(continuation) }
                return
            }
        }
    }

    private func serve(_ event: OpaquePointer) {
        defer { rd_kafka_event_destroy(event) }
        switch rd_kafka_event_type(event) {
        case RD_KAFKA_EVENT_REBALANCE:
            let partitions = PartitionListView(rd_kafka_event_topic_partition_list(event))?.partitions ?? []
            if rd_kafka_event_error(event) == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS {
                assign(partitions)
            } else {
                revoke(partitions)
            }
        case RD_KAFKA_EVENT_OFFSET_COMMIT:
            let number = Int(bitPattern: rd_kafka_event_opaque(event))
            let code = rd_kafka_event_error(event)
            let offsets = PartitionListView(rd_kafka_event_topic_partition_list(event))
            let error = offsets?.firstError ?? (code == RD_KAFKA_RESP_ERR_NO_ERROR ? nil : KafkaError(code))
            commits.removeValue(forKey: number)?.resume(returning: error)
        case RD_KAFKA_EVENT_ERROR:
            if let error = client.absorb(error: event) { handler.failed(error, in: self) }
        default: break
        }
    }

    private func deliver() {
        let granted = grants.withLock { grants in
            defer { grants.removeAll(keepingCapacity: true) }
            return grants
        }
        assignment.credit(granted)
        let isMoreWaiting = assignment.deliver(
            { handler.received($0, from: self) },
            ended: { handler.reachedEnd(of: $0, at: $1, in: self) },
            failed: { handler.failed($0, in: self) })
        if isMoreWaiting { wakeup.signal() }
    }

    // MARK: Rebalancing

    private func assign(_ added: [TopicPartition]) {
        if let error = assignment.add(added) { handler.failed(error, in: self) }
        handler.assigned(added, to: self)
    }

    private func revoke(_ removed: [TopicPartition]) {
        let isLost = rd_kafka_assignment_lost(client.pointer) != 0
        assignment.stopDelivering(removed)
        // librdkafka waits until the partitions are unassigned, so there is one such task at a time.
        Task {
            await handler.revoked(removed, lost: isLost, from: self)
            unassign(removed)
        }
    }

    private func unassign(_ removed: [TopicPartition]) {
        if case .closed = phase { return }
        // Credit of this assignment must not reach a later one.
        grants.withLock { grants in
            for partition in removed { grants[partition] = nil }
        }
        if let error = assignment.remove(removed) { handler.failed(error, in: self) }
        wake()
    }

    private func end(_ continuation: CheckedContinuation<Void, Never>) {
        phase = .closed
        loop.unwatch(wakeup.descriptor)
        for commit in commits.values { commit.resume(returning: Self.closed) }
        commits = [:]
        assignment.destroy()
        wakeup.detach(queue)
        rd_kafka_queue_destroy(queue)
        continuation.resume()
    }
}

/// The callbacks of a ``Consumer``. They are called one at a time on the consumer's thread, except
/// ``revoked(_:lost:from:)``, which runs as a task. Only that one may block or wait.
public protocol ConsumerHandler: AnyObject, Sendable {
    /// Called when these partitions are assigned to this consumer. Nothing is delivered before credit is granted with
    /// ``Consumer/grant(_:to:)``, here or later.
    func assigned(_ partitions: [TopicPartition], to consumer: Consumer)

    /// Called with records of one partition in offset order, no more than there was credit for.
    func received(_ records: [ConsumedRecord], from consumer: Consumer)

    /// Called when all existing records of a partition have been delivered. Offsets below `offset` that were not
    /// delivered are not records (transaction markers, aborted or compacted records). Called again each time the end is
    /// reached, while the partition has credit.
    func reachedEnd(of partition: TopicPartition, at offset: Int64, in consumer: Consumer)

    /// Called when these partitions are revoked. None of their records are delivered any more. The group waits until
    /// this returns, within the session and poll timeouts, so finish work and commit here. Commits are still accepted.
    /// - Parameter lost: True if the partitions belong to other members already, so that commits are rejected.
    func revoked(_ partitions: [TopicPartition], lost: Bool, from consumer: Consumer) async

    /// Called for an error from which librdkafka does not recover: an unknown topic, a denied access, or, if
    /// ``KafkaError/isFatal`` is true, the end of this consumer.
    func failed(_ error: KafkaError, in consumer: Consumer)
}

/// A consumer's member id and generation at one moment. Offsets that a transaction commits with them are rejected once
/// the group has moved to another generation or no longer has this member.
///
/// `@unchecked Sendable`: the object behind the pointer is never changed.
public final class GroupMembership: @unchecked Sendable {
    let pointer: OpaquePointer

    /// A consumer that is not a member has an empty id and no generation, and brokers accept its offsets unchecked
    /// (KIP-447 permits that for older clients). Therefore the member id is compared before and after: ids are never
    /// reused, so the metadata in between belongs to the same one.
    init(of client: Client) throws(KafkaError) {
        let before = client.memberID
        guard let before, let pointer = rd_kafka_consumer_group_metadata(client.pointer) else {
            throw Self.noMember
        }
        self.pointer = pointer
        if client.memberID != before { throw Self.noMember }
    }

    deinit { rd_kafka_consumer_group_metadata_destroy(pointer) }

    private static let noMember = KafkaError(
        code: .unknownMember, message: "the consumer is not a member of its group at the moment")
}

extension Client {
    /// The member id; nil if the consumer is not a member.
    fileprivate var memberID: String? {
        guard let id = rd_kafka_memberid(pointer) else { return nil }
        defer { rd_kafka_mem_free(pointer, id) }
        return id.pointee == 0 ? nil : String(cString: id)
    }
}
