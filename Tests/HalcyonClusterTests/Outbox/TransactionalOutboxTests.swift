import Concurrency
import Kafka
import TestSupport
import Testing

@testable import HalcyonCluster

/// The transactional outbox on Apache Kafka.
@Suite(
    .limitedParallelism, .enabled(if: ApacheKafka.isAvailable, "KAFKA_HOME is not set"), .sharedApacheKafka, .serialized
) struct TransactionalOutboxTests {
    static func names(_ numbers: some Sequence<Int>) -> [String] { numbers.map(String.init).sorted() }

    @Test func publishesEachJobOnceAndCommitsItsOffset() async throws {
        try await ConsumerFixture.with(.apache, partitions: 3) { fixture in
            // A rebalance waits for jobs that have begun.
            let worker = OutboxWorker(fixture, consumer: JobConsumerTests.options)
            try await worker.start(fixture)
            try await fixture.submit(0..<1000)
            #expect(try await fixture.committedEvents(atLeast: 1000).sorted() == Self.names(0..<1000))
            try await until("the group has no lag") { try await fixture.hasNoLag() }
            #expect(await worker.drain() == 0)
            // Jobs end before their completion returns.
            try await until("all completions have returned") { worker.completed.count == 1000 }
            #expect(worker.completed.sorted() == Self.names(0..<1000) && worker.errors.isEmpty)
        }
    }

    @Test func drainWaitsForTheLastTransaction() async throws {
        try await ConsumerFixture.with(.apache, partitions: 1) { fixture in
            let gate = AsyncEvent()
            defer { gate.signal() }
            let worker = OutboxWorker(fixture, gate: gate)
            try await fixture.submit(0..<50)
            try await worker.start(fixture)
            await worker.outbox.ready()
            await worker.consumer.waitForAssignment()
            try await until("all jobs have begun") { worker.consumer.state.withLock { $0.ledger.begun(in: nil) } == 50 }
            let drain = Task { await worker.drain() }
            try await until("the drain has begun") { !worker.consumer.isServing }
            #expect(worker.completed.isEmpty)
            gate.signal()
            #expect(await drain.value == 0)
            // Jobs end before their completion returns.
            try await until("all completions have returned") { worker.completed.count == 50 }
            #expect(try await fixture.committedEvents(atLeast: 50).count == 50)
        }
    }

    /// The first size is rejected by librdkafka, the second by the broker because of a limit of the topic.
    @Test(arguments: [2_000_000, 40_000]) func oversizedRecordFailsOnlyItsJob(_ size: Int) async throws {
        try await ConsumerFixture.with(.apache, partitions: 1) { fixture in
            let admin = try Admin(properties: fixture.clientProperties)
            let small = NewTopic(
                fixture.topics.prefix + "small", partitions: 1, replication: 1,
                configuration: ["max.message.bytes": "20000"])
            _ = try await admin.create([small], within: .patience)
            await admin.close()
            let worker = OutboxWorker(fixture) { name in
                let events = ProducerRecord(topic: fixture.topics.events, value: Array(name.utf8))
                let bytes = [UInt8](repeating: 7, count: name == "5" ? size : 10)
                return [events, ProducerRecord(topic: small.name, value: bytes)]
            }
            try await fixture.submitInOrder(0..<20)
            try await worker.start(fixture)
            try await until("all jobs but one are completed") {
                worker.completed.count == 19 && worker.errors.count == 1
            }
            #expect(worker.errors["5"]?.code == .messageTooLarge)
            #expect(try await fixture.committedEvents(atLeast: 19).sorted() == Self.names((0..<20).filter { $0 != 5 }))
            await worker.drain()
        }
    }

    /// The batch of one covers a transaction whose only record is rejected together with its producer.
    @Test(arguments: [1, 5000]) func continuesAfterFencingWithoutAnInstance(_ batch: Int) async throws {
        try await ConsumerFixture.with(.apache, partitions: 2) { fixture in
            var options = TransactionOptions()
            options.batch = batch
            let worker = OutboxWorker(
                fixture, options: options, name: fixture.topics.prefix, consumer: JobConsumerTests.options)
            try await worker.start(fixture)
            try await fixture.submit(0..<60)
            for round in 1...3 {
                try await until("some jobs are completed") { worker.completed.count >= round * 20 }
                // Fences the worker, as the brokers do when a transaction times out.
                let other = try TransactionalProducer(
                    properties: fixture.clientProperties.merging(["transactional.id": fixture.topics.prefix]) { $1 })
                try await other.initialize(within: .patience)
                await other.close()
                try await fixture.submit(60 * round..<60 * (round + 1))
            }
            #expect(try await fixture.committedEvents(atLeast: 240).sorted() == Self.names(0..<240))
            #expect(worker.fatalError == nil && worker.errors.isEmpty)
            #expect(await worker.drain() == 0)
        }
    }

    @Test func stopsWhenAnotherWorkerTakesItsInstance() async throws {
        try await ConsumerFixture.with(.apache, partitions: 2) { fixture in
            var options = TransactionOptions()
            options.instance = "the-one"
            let first = OutboxWorker(fixture, options: options)
            try await first.start(fixture)
            try await fixture.submit(0..<100)
            try await until("some jobs are completed") { first.completed.count == 100 }
            let second = OutboxWorker(fixture, options: options)
            try await second.start(fixture)
            await second.outbox.ready()
            try await fixture.submit(100..<600)
            try await until("the first worker has stopped") { first.fatalError != nil }
            #expect(first.fatalError?.isFatal == true && "\(first.fatalError!)".contains("worker.instance"))
            await first.drain()
            #expect(try await fixture.committedEvents(atLeast: 600).sorted() == Self.names(0..<600))
            #expect(second.fatalError == nil)
            #expect(await second.drain() == 0)
        }
    }

    @Test func doesNotPublishJobsOfRevokedPartitions() async throws {
        try await ConsumerFixture.with(.apache, partitions: 1) { fixture in
            let gate = AsyncEvent()
            defer { gate.signal() }
            let worker = OutboxWorker(fixture, gate: gate)
            try await fixture.submit(0..<10)
            try await worker.start(fixture)
            await worker.outbox.ready()
            try await until("all jobs have begun") { worker.consumer.state.withLock { $0.ledger.begun(in: nil) } == 10 }
            // As if the group had continued without this worker, and the worker had rejoined.
            let partition = TopicPartition(fixture.topics.jobs(.normal), 0)
            worker.consumer.state.withLock { state in
                state.ledger.revoke(partition)
                _ = state.ledger.assign(partition)
            }
            gate.signal()
            try await until("all jobs have failed") { worker.errors.count == 10 }
            #expect(worker.errors.values.allSatisfy { $0.code == .illegalGeneration } && worker.completed.isEmpty)
            #expect(try await fixture.progress().committed.isEmpty)
            await worker.drain()
        }
    }

    @Test func publishesEachJobOnceDuringRebalances() async throws {
        try await ConsumerFixture.with(.apache, partitions: 6) { fixture in
            try await fixture.submit(0..<3000)
            var workers: [OutboxWorker] = []
            for round in 0..<6 {
                let worker = OutboxWorker(fixture, delay: 0..<300)
                try await worker.start(fixture)
                await worker.consumer.waitForAssignment()
                workers.append(worker)
                try await fixture.submit(3000 + round * 100..<3000 + (round + 1) * 100)
                // Workers of odd rounds have no time to complete their jobs.
                if round > 1 {
                    await workers[round - 2].drain(grace: round % 2 == 0 ? .seconds(60) : .milliseconds(20))
                }
            }
            #expect(try await fixture.committedEvents(atLeast: 3600).sorted() == Self.names(0..<3600))
            for worker in workers { await worker.drain() }
        }
    }

    @Test(.apacheKafkaWithLittleMetadata) func publishesEachJobOnceWithLittleMetadata() async throws {
        try await ConsumerFixture.with(.apache, partitions: 1) { fixture in
            var options = JobConsumer.Options()
            options.window = 32
            let worker = OutboxWorker(fixture, consumer: options)
            try await fixture.submit(0..<300)
            try await worker.start(fixture)
            #expect(try await fixture.committedEvents(atLeast: 300).sorted() == Self.names(0..<300))
            #expect(await worker.drain() == 0)
        }
    }

    /// The marker of a transaction that wrote jobs occupies an offset without a record.
    @Test(arguments: [true, false]) func commitsTheEndBehindATransactionMarker(_ isTransactional: Bool) async throws {
        try await ConsumerFixture.with(.apache, partitions: 1) { fixture in
            let producer = try TransactionalProducer(
                properties: fixture.clientProperties.merging(["transactional.id": "jobs-\(fixture.topics.prefix)"]) {
                    $1
                })
            try await producer.initialize(within: .patience)
            try await producer.begin()
            _ = await producer.send([ProducerRecord(topic: fixture.topics.jobs(.normal), value: Array("0".utf8))])
            try await producer.commit(within: .patience)
            await producer.close()
            if isTransactional {
                let worker = OutboxWorker(fixture)
                try await worker.start(fixture)
                try await until("the group has no lag") { try await fixture.hasNoLag() }
                await worker.drain()
            } else {
                let consumer = ScriptedJobHandler { _ in .completes }.consumer(JobConsumer.Options())
                try await fixture.start(consumer)
                try await until("the group has no lag") { try await fixture.hasNoLag() }
                _ = await consumer.shutdown(gracePeriod: .seconds(60))
            }
            let (committed, ends) = try await fixture.progress()
            #expect(ends.values.first == 2 && committed.values.first == GroupOffset(2))
        }
    }

    @Test func reportsBrokersWithoutTransactions() async throws {
        try await ConsumerFixture.with(.mock, partitions: 1) { fixture in
            let worker = OutboxWorker(fixture)
            try await fixture.submit(0..<1)
            try await worker.start(fixture)
            await worker.outbox.ready()
            #expect(worker.fatalError?.code == .unsupported)
            await worker.drain(grace: .zero)
            #expect(worker.completed.isEmpty)
        }
    }
}

/// The transactional outbox while Apache Kafka is killed.
@Suite(.killableApacheKafka, .limitedParallelism, .enabled(if: ApacheKafka.isAvailable, "KAFKA_HOME is not set"))
struct TransactionalOutboxCrashTests {
    @Test func waitsForAKilledBroker() async throws {
        let kafka = try #require(SharedApacheKafka.current)
        try await ConsumerFixture.with(.apache, partitions: 3) { fixture in
            let worker = OutboxWorker(fixture)
            try await worker.start(fixture)
            try await fixture.submit(0..<500)
            for round in 1...2 {
                let submitting = Task { try await fixture.submit(500 * round..<500 * (round + 1)) }
                try await until("some jobs are completed") { worker.completed.count >= 300 * round }
                await kafka.kill()
                try await kafka.start()
                try await submitting.value
            }
            try await until("all jobs are completed") { worker.completed.count >= 1500 }
            let names = TransactionalOutboxTests.names(0..<1500)
            #expect(try await fixture.committedEvents(atLeast: 1500).sorted() == names)
            #expect(await worker.drain() == 0)
        }
    }
}
