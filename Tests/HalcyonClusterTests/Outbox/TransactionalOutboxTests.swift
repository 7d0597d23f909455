import Concurrency
import Kafka
import TestSupport
import Testing

@testable import HalcyonCluster

/// Jobs that end in transactions, on Apache Kafka.
@Suite(
    .limitedParallelism, .enabled(if: ApacheKafka.isAvailable, "KAFKA_HOME is not set"), .sharedApacheKafka, .serialized
) struct TransactionalOutboxTests {
    static func names(_ numbers: some Sequence<Int>) -> [String] { numbers.map(String.init).sorted() }

    @Test func eachJobIsToldOfOnceAndPassed() async throws {
        try await ConsumerFixture.with(.apache, partitions: 3) { fixture in
            let worker = TellingWorker(fixture)
            try await worker.start(fixture)
            try await fixture.submit(0..<1000)
            #expect(try await fixture.told(atLeast: 1000).sorted() == Self.names(0..<1000))
            try await until("nothing lags") { try await fixture.isAtTheEnd() }
            #expect(await worker.drain() == 0)
            #expect(worker.told.sorted() == Self.names(0..<1000) && worker.errors.isEmpty)
        }
    }

    @Test func aDrainWaitsForTheLastTransaction() async throws {
        try await ConsumerFixture.with(.apache, partitions: 1) { fixture in
            var options = TransactionOptions()
            options.linger = .seconds(1)
            let worker = TellingWorker(fixture, options: options)
            try await fixture.submit(0..<50)
            try await worker.start(fixture)
            await worker.outbox.ready()
            await worker.consumer.waitForAssignment()
            try await until("all have begun") { worker.consumer.state.withLock { $0.ledger.begun(in: nil) } == 50 }
            #expect(worker.told.isEmpty)
            #expect(await worker.drain() == 0)
            #expect(worker.told.count == 50)
            #expect(try await fixture.told(atLeast: 50).count == 50)
        }
    }

    /// Refused by librdkafka, and refused by the broker for its topic.
    @Test(arguments: [2_000_000, 40_000]) func aRecordThatIsTooLargeFailsItsJobAlone(_ size: Int) async throws {
        try await ConsumerFixture.with(.apache, partitions: 1) { fixture in
            let admin = try Admin(properties: fixture.server)
            let small = NewTopic(
                fixture.topics.prefix + "small", partitions: 1, replication: 1,
                configuration: ["max.message.bytes": "20000"])
            _ = try await admin.create([small])
            await admin.close()
            let worker = TellingWorker(fixture) { name in
                let events = ProducerRecord(topic: fixture.topics.events, value: Array(name.utf8))
                let bytes = [UInt8](repeating: 7, count: name == "5" ? size : 10)
                return [events, ProducerRecord(topic: small.name, value: bytes)]
            }
            try await fixture.submitInOrder(0..<20)
            try await worker.start(fixture)
            try await until("all but one are told") { worker.told.count == 19 && worker.errors.count == 1 }
            #expect(worker.errors["5"]?.code == .messageTooLarge)
            #expect(try await fixture.told(atLeast: 19).sorted() == Self.names((0..<20).filter { $0 != 5 }))
            await worker.drain()
        }
    }

    /// Also where a transaction has a single job, whose record the brokers refuse with the producer.
    @Test(arguments: [1, 5000]) func whoIsFencedGoesOnWhereNobodyElseCanHaveItsName(_ batch: Int) async throws {
        try await ConsumerFixture.with(.apache, partitions: 2) { fixture in
            var options = TransactionOptions()
            options.batch = batch
            let worker = TellingWorker(fixture, options: options, name: fixture.topics.prefix)
            try await worker.start(fixture)
            try await fixture.submit(0..<200)
            for round in 1...3 {
                try await until("some are told") { worker.told.count >= round * 40 }
                // What the brokers do too, when a transaction takes too long.
                let other = try TransactionalProducer(
                    properties: fixture.server.merging(["transactional.id": fixture.topics.prefix]) { $1 })
                try await other.initialize(within: .seconds(120))
                await other.close()
                try await fixture.submit(200 * round..<200 * (round + 1))
            }
            #expect(try await fixture.told(atLeast: 800).sorted() == Self.names(0..<800))
            #expect(worker.end == nil && worker.errors.isEmpty)
            #expect(await worker.drain() == 0)
        }
    }

    @Test func whoLosesItsNameToAnotherEnds() async throws {
        try await ConsumerFixture.with(.apache, partitions: 2) { fixture in
            var options = TransactionOptions()
            options.instance = "the-one"
            let first = TellingWorker(fixture, options: options)
            try await first.start(fixture)
            try await fixture.submit(0..<100)
            try await until("some are told") { first.told.count == 100 }
            let second = TellingWorker(fixture, options: options)
            try await second.start(fixture)
            await second.outbox.ready()
            try await fixture.submit(100..<600)
            try await until("the first has ended") { first.end != nil }
            #expect(first.end?.isFatal == true && "\(first.end!)".contains("worker.instance"))
            await first.drain()
            #expect(try await fixture.told(atLeast: 600).sorted() == Self.names(0..<600))
            #expect(second.end == nil)
            #expect(await second.drain() == 0)
        }
    }

    @Test func whatWasLostIsNotTold() async throws {
        try await ConsumerFixture.with(.apache, partitions: 1) { fixture in
            var options = TransactionOptions()
            options.linger = .seconds(1)
            let worker = TellingWorker(fixture, options: options)
            try await fixture.submit(0..<10)
            try await worker.start(fixture)
            await worker.outbox.ready()
            try await until("all have begun") { worker.consumer.state.withLock { $0.ledger.begun(in: nil) } == 10 }
            // As when the group went on without this worker, which is a member again.
            let partition = TopicPartition(fixture.topics.jobs(.normal), 0)
            worker.consumer.state.withLock { state in
                state.ledger.revoke(partition)
                _ = state.ledger.assign(partition)
            }
            try await until("none is told") { worker.errors.count == 10 }
            #expect(worker.errors.values.allSatisfy { $0.code == .illegalGeneration } && worker.told.isEmpty)
            #expect(try await fixture.progress().committed.isEmpty)
            await worker.drain()
        }
    }

    @Test func partitionsThatMoveAllTheTimeTakeTheirJobsAlong() async throws {
        try await ConsumerFixture.with(.apache, partitions: 6) { fixture in
            try await fixture.submit(0..<3000)
            var workers: [TellingWorker] = []
            for round in 0..<6 {
                let worker = TellingWorker(fixture, delay: 0..<300)
                try await worker.start(fixture)
                await worker.consumer.waitForAssignment()
                workers.append(worker)
                try await fixture.submit(3000 + round * 100..<3000 + (round + 1) * 100)
                // The odd ones have no time to finish what they began.
                if round > 1 {
                    await workers[round - 2].drain(grace: round % 2 == 0 ? .seconds(60) : .milliseconds(20))
                }
            }
            #expect(try await fixture.told(atLeast: 3600).sorted() == Self.names(0..<3600))
            for worker in workers { await worker.drain() }
        }
    }

    @Test func aBrokerThatIsKilledIsWaitedFor() async throws {
        let kafka = try await ApacheKafka(hasOwnController: true)
        do {
            try await kafka.start()
            try await SharedApacheKafka.$current.withValue(kafka) {
                try await ConsumerFixture.with(.apache, partitions: 3) { fixture in
                    let worker = TellingWorker(fixture)
                    try await worker.start(fixture)
                    try await fixture.submit(0..<500)
                    for round in 1...2 {
                        let submitting = Task { try await fixture.submit(500 * round..<500 * (round + 1)) }
                        try await until("some are told") { worker.told.count >= 300 * round }
                        await kafka.kill()
                        try await Task.sleep(for: .seconds(1))
                        try await kafka.start()
                        try await submitting.value
                    }
                    try await until("all are told") { worker.told.count >= 1500 }
                    #expect(try await fixture.told(atLeast: 1500).sorted() == Self.names(0..<1500))
                    #expect(await worker.drain() == 0)
                }
            }
        } catch {
            await kafka.remove()
            throw error
        }
        await kafka.remove()
    }

    @Test func brokersThatTakeLittleMetadataMakeJobsWaitForEachOther() async throws {
        let kafka = try await ApacheKafka(properties: ["offset.metadata.max.bytes=16"])
        do {
            try await kafka.start()
            try await SharedApacheKafka.$current.withValue(kafka) {
                try await ConsumerFixture.with(.apache, partitions: 1) { fixture in
                    var options = JobConsumer.Options()
                    options.window = 32
                    let worker = TellingWorker(fixture, consumer: options)
                    try await fixture.submit(0..<300)
                    try await worker.start(fixture)
                    #expect(try await fixture.told(atLeast: 300).sorted() == Self.names(0..<300))
                    #expect(await worker.drain() == 0)
                }
            }
        } catch {
            await kafka.remove()
            throw error
        }
        await kafka.remove()
    }

    /// Behind the marker of a transaction that wrote jobs, an offset stands that no record has.
    @Test(arguments: [true, false]) func theEndIsCommittedWhereNoRecordStands(_ isTransactional: Bool) async throws {
        try await ConsumerFixture.with(.apache, partitions: 1) { fixture in
            let producer = try TransactionalProducer(
                properties: fixture.server.merging(["transactional.id": "jobs-\(fixture.topics.prefix)"]) { $1 })
            try await producer.initialize(within: .seconds(120))
            try await producer.begin()
            _ = await producer.send([ProducerRecord(topic: fixture.topics.jobs(.normal), value: Array("0".utf8))])
            try await producer.commit(within: .seconds(120))
            await producer.close()
            if isTransactional {
                let worker = TellingWorker(fixture)
                try await worker.start(fixture)
                try await until("nothing lags") { try await fixture.isAtTheEnd() }
                await worker.drain()
            } else {
                let consumer = Hands { _ in .endsAtOnce }.consumer(JobConsumer.Options())
                try await fixture.start(consumer)
                try await until("nothing lags") { try await fixture.isAtTheEnd() }
                _ = await consumer.shutdown(gracePeriod: .seconds(60))
            }
            let (committed, ends) = try await fixture.progress()
            #expect(ends.values.first == 2 && committed.values.first == GroupOffset(2))
        }
    }

    @Test func brokersWithoutTransactionsAreNamed() async throws {
        try await ConsumerFixture.with(.mock, partitions: 1) { fixture in
            let worker = TellingWorker(fixture)
            try await fixture.submit(0..<1)
            try await worker.start(fixture)
            await worker.outbox.ready()
            #expect(worker.end?.code == .unsupported)
            await worker.drain(grace: .zero)
            #expect(worker.told.isEmpty)
        }
    }
}
