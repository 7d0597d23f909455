import Concurrency
import HalcyonCluster
import Kafka
import Telemetry
import TestSupport

/// A worker as the outbox sees one. It receives jobs and, after a delay, publishes one event for each, whose value is
/// the name of the job.
final class OutboxWorker: Sendable {
    private let state = Lock(State())
    private let publishing: @Sendable (String) -> [ProducerRecord]
    private let gate: AsyncEvent?
    let outbox: TransactionalOutbox
    let consumer: JobConsumer

    private struct State {
        var completed: [String] = []
        var errors: [String: KafkaError] = [:]
        var fatalError: KafkaError?
        var complete: (@Sendable (JobDelivery) -> Void)?
    }

    /// Jobs whose completion has returned.
    var completed: [String] { state.withLock { $0.completed } }
    /// Jobs whose completion has thrown, with the errors.
    var errors: [String: KafkaError] { state.withLock { $0.errors } }
    /// The fatal error of the outbox.
    var fatalError: KafkaError? { state.withLock { $0.fatalError } }

    /// - Parameters:
    ///   - options: the options of the outbox. An instance determines its transactional id.
    ///   - name: the transactional id of an outbox without an instance.
    ///   - gate: the event that jobs that have begun await before they complete; nil if they complete at once.
    ///   - publishing: returns the records to publish for a job.
    init(
        _ fixture: ConsumerFixture, options: TransactionOptions = TransactionOptions(), name: String? = nil,
        consumer consumerOptions: JobConsumer.Options = JobConsumer.Options(), delay: Range<Int> = 0..<20,
        gate: AsyncEvent? = nil, publishing: (@Sendable (String) -> [ProducerRecord])? = nil
    ) {
        let topics = fixture.topics
        self.gate = gate
        self.publishing = publishing ?? { [ProducerRecord(topic: topics.events, value: Array($0.utf8))] }
        let state = state
        var properties = fixture.kafka.transactions(group: topics.prefix, instance: options.instance)
        if let name { properties["transactional.id"] = name }
        outbox = TransactionalOutbox(
            properties: properties, options: options, events: ClientCallbacks(), log: .silent, metrics: Metrics()
        ) { error in
            state.withLock { $0.fatalError = error }
        }
        consumer = JobConsumer(options: consumerOptions, commits: outbox, log: .silent, metrics: Metrics()) { records in
            for delivery in records {
                Task {
                    try? await Task.sleep(for: .milliseconds(Int.random(in: delay)))
                    state.withLock { $0.complete }?(delivery)
                }
            }
        }
        state.withLock { $0.complete = { [weak self] delivery in Task { await self?.complete(delivery) } } }
    }

    private func complete(_ delivery: JobDelivery) async {
        let name = String(decoding: delivery.record.value ?? [], as: UTF8.self)
        guard delivery.claim() else { return delivery.returnToQueue() }
        await gate?.wait()
        do throws(KafkaError) {
            try await outbox.complete(delivery, publishing: publishing(name))
            state.withLock { $0.completed.append(name) }
        } catch {
            state.withLock { $0.errors[name] = error }
            delivery.returnToQueue()
        }
    }

    func start(_ fixture: ConsumerFixture) async throws {
        await outbox.start()
        try await fixture.start(consumer)
    }

    @discardableResult
    func drain(grace: Duration = .seconds(60)) async -> Int {
        let left = await consumer.shutdown(gracePeriod: grace)
        await outbox.close()
        return left
    }
}

extension ConsumerFixture {
    /// Returns the values of all committed events, in the order of each partition, once there are at least `count`.
    func committedEvents(atLeast count: Int) async throws -> [String] {
        let found = Lock<[String]>([])
        let reader = try await TopicReader.open(
            topics.events, from: .beginning, properties: clientProperties, within: .patience)
        let reading = Task {
            for try await record in reader {
                let value = String(decoding: record.value ?? [], as: UTF8.self)
                found.withLock { $0.append(value) }
            }
        }
        defer { reading.cancel() }
        do {
            try await until("\(count) events are committed") { found.withLock { $0.count } >= count }
            // Allows time for events that would be published twice.
            try await Task.sleep(for: .seconds(1))
        } catch {
            await reader.close()
            throw error
        }
        await reader.close()
        return found.withLock { $0 }
    }

    /// Returns the committed offsets of the group in the normal lane, and the end offsets.
    func progress() async throws -> (committed: [TopicPartition: GroupOffset], ends: [TopicPartition: Int64]) {
        let admin = try Admin(properties: clientProperties)
        let metadata = try await admin.metadata(within: .patience)
        let partitions = metadata.topics[topics.jobs(.normal), default: []].map {
            TopicPartition(topics.jobs(.normal), $0.id)
        }
        let committed = try await admin.committed(by: topics.prefix, in: partitions, within: .patience)
        let ends = try await admin.watermarks(of: partitions, within: .patience).mapValues(\.upperBound)
        await admin.close()
        return (committed, ends)
    }

    /// Returns true if the group has no lag.
    func hasNoLag() async throws -> Bool {
        let (committed, ends) = try await progress()
        return ends.allSatisfy { $0.value == 0 || committed[$0.key]?.offset == $0.value }
    }

    /// The properties of admin clients and readers.
    var clientProperties: [String: String] { properties.filter { $0.key == "bootstrap.servers" } }
}
