import CRdKafka
import Threads

/// A member of a consumer group that delivers records only for credit.
///
/// Each assigned partition has its own queue, looked into only while the partition has credit; so holding a partition
/// back takes no pause, loses no prefetch, and does not touch the others. Meanwhile librdkafka goes on prefetching into
/// bounded queues: `queued.max.messages.kbytes` (here 4 MiB unless set) is per partition.
///
/// Offsets are committed by ``commit(_:)`` alone. It must be ended by ``close()``.
///
/// `fetch.wait.max.ms` (librdkafka's default 500) is how long a broker may hold back an answer for lack of data.
/// Measured from send to delivery on loopback: Apache Kafka 4.1 takes 0.7 ms with 500 as with 10, for it answers with
/// the first byte, and 10 only costs an idle consumer 0.7 % of a core instead of 0.15 %; the mock cluster looks again
/// only when the time is over, so there it takes 500 ms or 10.5 ms. So: the default for real brokers, 10 for the mock
/// cluster (2 % of a core when idle).
///
/// Measured with Apache Kafka and records of 500 bytes: a million records delivered per CPU-second, with a credit of 64
/// as of 100,000.
public actor Consumer {
    private let loop: EventLoop
    /// The consumer's own thread.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    private let client: Client
    private let handler: any ConsumerHandler
    private let wakeup = Wakeup()
    private let grants = Lock<[TopicPartition: Credit]>([:])
    private let polled = Lock(ContinuousClock.now)

    /// Rebalances, errors, results of commits.
    private let queue: OpaquePointer
    private let assignment: Assignment
    private var commits: [Int: CheckedContinuation<KafkaError?, Never>] = [:]
    private var commitCount = 0
    private var phase = Phase.open

    private enum Phase {
        case open
        case leaving(CheckedContinuation<Void, Never>)
        case closed
    }

    /// Joins the group named by the property `group.id` for `topics`.
    /// - Parameters:
    ///   - properties: librdkafka's; `enable.auto.commit` and `enable.auto.offset.store` are always off.
    ///   - handler: kept until the consumer is released; it gets the consumer with each call and need not keep it.
    /// - Throws: ``KafkaError`` that names the property that was refused.
    public static func start(
        topics: [String], properties: [String: String], handler: any ConsumerHandler,
        events: ClientEvents = ClientEvents()
    ) async throws(KafkaError) -> Consumer {
        let defaults = ["queued.max.messages.kbytes": "4096"]
        let client = try Client(
            RD_KAFKA_CONSUMER, properties: defaults.merging(properties) { $1 },
            enforced: [
                "enable.auto.commit": "false", "enable.auto.offset.store": "false", "enable.partition.eof": "true",
            ],
            eventMask: RD_KAFKA_EVENT_REBALANCE | RD_KAFKA_EVENT_ERROR, events: events)
        guard let queue = rd_kafka_queue_get_consumer(client.pointer) else {
            throw KafkaError(code: .invalidArgument, message: "property group.id: a consumer needs it")
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
        assignment = Assignment(client, wakeup)
    }

    deinit {
        wakeup.close()
        let loop = loop
        _ = WorkThread(name: "kafka-stop") { loop.stop() }
    }

    // MARK: Using it

    /// Lets so much more of a partition be delivered. Credit for a partition that is not this consumer's is
    /// forgotten. May be called from anywhere, the handler included.
    public nonisolated func grant(_ credit: Credit, to partition: TopicPartition) {
        if credit == .none { return }
        let isFirst = grants.withLock { grants in
            defer { grants[partition, default: .none] += credit }
            return grants.isEmpty
        }
        if isFirst { wakeup.signal() }
    }

    /// When it last looked for records, which it does once a second at least, whether or not a broker is there.
    public nonisolated var lastPolled: ContinuousClock.Instant { polled.withLock { $0 } }

    /// One past the newest offset of each of these partitions, as far as the last fetches told; what is not known is left out. It asks nobody.
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

    /// Commits offsets (the next to read) for the group and waits for the broker's word.
    /// - Throws: ``KafkaError``: ``KafkaError/Code/illegalGeneration`` and its like when the partition belongs to
    ///   someone else by now, ``KafkaError/Code/closed``, ``KafkaError/Code/invalidArgument`` for a note that is not
    ///   ASCII.
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

    /// What the group has committed for these partitions; those without a commit are left out.
    /// - Throws: ``KafkaError``, also when the broker does not answer within `limit`.
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

    /// What the group knows this consumer by at this moment, for ``TransactionalProducer/sendOffsets(_:of:)``.
    /// - Throws: ``KafkaError/Code/unknownMember`` when it is no member now, ``KafkaError/Code/closed``.
    public func membership() throws(KafkaError) -> GroupMembership {
        guard case .open = phase else { throw Self.closed }
        return try GroupMembership(of: client)
    }

    /// Gives all partitions back (the handler's ``ConsumerHandler/revoked(_:lost:from:)`` is called and waited for),
    /// leaves the group and ends. A second call returns at once.
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

    /// Looks into the queue at least so often that `max.poll.interval.ms` never runs out.
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
        // librdkafka goes no further until the partitions are unassigned, so there is one such task at a time.
        Task {
            await handler.revoked(removed, lost: isLost, from: self)
            unassign(removed)
        }
    }

    private func unassign(_ removed: [TopicPartition]) {
        if case .closed = phase { return }
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

/// What a ``Consumer`` calls. The calls come one after another on the consumer's own thread, except
/// ``revoked(_:lost:from:)``, which runs as a task; none but that may block or wait.
public protocol ConsumerHandler: AnyObject, Sendable {
    /// These partitions are this consumer's from now on. Nothing of them is delivered before credit is granted with
    /// ``Consumer/grant(_:to:)``, here or later.
    func assigned(_ partitions: [TopicPartition], to consumer: Consumer)

    /// Records came, all of one partition, in the order of their offsets, no more than there was credit for.
    func received(_ records: [ConsumedRecord], from consumer: Consumer)

    /// All records of a partition have come that there are so far: what stands below `offset` and did not come is no record (markers of
    /// transactions, what was aborted or compacted). Told again whenever the end is come to anew, while the partition has credit.
    func reachedEnd(of partition: TopicPartition, at offset: Int64, in consumer: Consumer)

    /// These partitions are taken away; no more records of them come. Until this returns the group waits, within the
    /// session and poll time-outs, so finish work and commit here; commits still go through.
    /// - Parameter lost: they belong to someone else already and commits will be refused.
    func revoked(_ partitions: [TopicPartition], lost: Bool, from consumer: Consumer) async

    /// Something failed that librdkafka does not mend by itself: a topic that is not there, an access refused, or, when
    /// ``KafkaError/isFatal``, the end of this consumer.
    func failed(_ error: KafkaError, in consumer: Consumer)
}

/// Who a consumer was in its group at one moment: member id and generation. Offsets that a transaction carries under it are refused
/// once the group has gone on to another generation, or without this member.
///
/// `@unchecked Sendable`: what it points to is never changed.
public final class GroupMembership: @unchecked Sendable {
    let pointer: OpaquePointer

    /// A consumer that is no member has an empty id and no generation, and brokers take offsets of such a one unchecked (KIP-447 left that to
    /// older clients). So its id is looked at before and after: ids are given once, so what lies between was taken under the same one.
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
        code: .unknownMember, message: "the consumer is no member of its group now")
}

extension Client {
    /// Nil when the consumer is no member.
    fileprivate var memberID: String? {
        guard let id = rd_kafka_memberid(pointer) else { return nil }
        defer { rd_kafka_mem_free(pointer, id) }
        return id.pointee == 0 ? nil : String(cString: id)
    }
}
