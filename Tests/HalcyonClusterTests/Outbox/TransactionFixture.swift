import Concurrency
import HalcyonCluster
import Kafka
import Telemetry
import TestSupport

/// A worker as the outbox sees one: takes jobs and, after a moment, tells of each in one event that carries the job's name.
final class TellingWorker: Sendable {
    private let state = Lock(State())
    private let publishing: @Sendable (String) -> [ProducerRecord]
    let outbox: TransactionalOutbox
    let consumer: JobConsumer

    private struct State {
        var told: [String] = []
        var errors: [String: KafkaError] = [:]
        var end: KafkaError?
        var complete: (@Sendable (JobDelivery) -> Void)?
    }

    /// Jobs whose settling has returned.
    var told: [String] { state.withLock { $0.told } }
    /// Jobs whose settling has thrown.
    var errors: [String: KafkaError] { state.withLock { $0.errors } }
    /// Why the outbox has ended.
    var end: KafkaError? { state.withLock { $0.end } }

    /// - Parameters:
    ///   - options: of the outbox; with an instance it has that one's transactional id.
    ///   - name: a transactional id of its own, for an outbox without an instance.
    ///   - publishing: what is told of a job.
    init(
        _ fixture: ConsumerFixture, options: TransactionOptions = TransactionOptions(), name: String? = nil,
        consumer consumerOptions: JobConsumer.Options = JobConsumer.Options(), delay: Range<Int> = 0..<20,
        publishing: (@Sendable (String) -> [ProducerRecord])? = nil
    ) {
        let topics = fixture.topics
        self.publishing = publishing ?? { [ProducerRecord(topic: topics.events, value: Array($0.utf8))] }
        let state = state
        var properties = fixture.kafka.transactions(group: topics.prefix, instance: options.instance)
        if let name { properties["transactional.id"] = name }
        outbox = TransactionalOutbox(
            properties: properties, options: options, events: ClientCallbacks(), log: .silent, metrics: Metrics()
        ) { error in
            state.withLock { $0.end = error }
        }
        consumer = JobConsumer(options: consumerOptions, commits: outbox, log: .silent, metrics: Metrics()) { records in
            for taken in records {
                Task {
                    try? await Task.sleep(for: .milliseconds(Int.random(in: delay)))
                    state.withLock { $0.complete }?(taken)
                }
            }
        }
        state.withLock { $0.complete = { [weak self] taken in Task { await self?.complete(taken) } } }
    }

    private func complete(_ taken: JobDelivery) async {
        let name = String(decoding: taken.record.value ?? [], as: UTF8.self)
        guard taken.claim() else { return taken.returnToQueue() }
        do throws(KafkaError) {
            try await outbox.complete(taken, publishing: publishing(name))
            state.withLock { $0.told.append(name) }
        } catch {
            state.withLock { $0.errors[name] = error }
            taken.returnToQueue()
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
    /// What was told, by those who read what is committed, in the order of partitions; read from the beginning once it is so many or more.
    func told(atLeast count: Int) async throws -> [String] {
        let found = Lock<[String]>([])
        let reader = try await TopicReader.open(topics.events, from: .beginning, properties: server)
        let reading = Task {
            for try await record in reader {
                let value = String(decoding: record.value ?? [], as: UTF8.self)
                found.withLock { $0.append(value) }
            }
        }
        defer { reading.cancel() }
        do {
            try await until("\(count) events are told") { found.withLock { $0.count } >= count }
            // A moment for what would be told twice.
            try await Task.sleep(for: .seconds(1))
        } catch {
            await reader.close()
            throw error
        }
        await reader.close()
        return found.withLock { $0 }
    }

    /// What the group has committed of the ordinary lane, and where that ends.
    func progress() async throws -> (committed: [TopicPartition: GroupOffset], ends: [TopicPartition: Int64]) {
        let admin = try Admin(properties: server)
        let metadata = try await admin.metadata()
        let partitions = metadata.topics[topics.jobs(.normal), default: []].map {
            TopicPartition(topics.jobs(.normal), $0.id)
        }
        let committed = try await admin.committed(by: topics.prefix, in: partitions)
        let ends = try await admin.watermarks(of: partitions).mapValues(\.upperBound)
        await admin.close()
        return (committed, ends)
    }

    /// Whether the group lags behind nowhere.
    func isAtTheEnd() async throws -> Bool {
        let (committed, ends) = try await progress()
        return ends.allSatisfy { $0.value == 0 || committed[$0.key]?.offset == $0.value }
    }

    /// What a client needs that asks and reads.
    var server: [String: String] { properties.filter { $0.key == "bootstrap.servers" } }
}
