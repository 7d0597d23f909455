import Kafka
import Subprocess
import TestSupport
import Testing

@testable import HalcyonGateway

/// The event feed with transactions, added partitions and crashes of Apache Kafka.
@Suite(.enabled(if: ApacheKafka.isAvailable, "KAFKA_HOME is not set"), .sharedApacheKafka, .serialized)
struct EventKafkaTests {
    @Test func neverDeliversEventsOfAbortedTransactions() async throws {
        let apache = try #require(SharedApacheKafka.current)
        try await EventFixture.with(apache: apache, partitions: 2) { fixture in
            // Covers events from memory, live events, and events replayed from Kafka.
            let producer = try TransactionalProducer(properties: [
                "bootstrap.servers": fixture.brokers, "transactional.id": fixture.topics.prefix,
            ])
            try await fixture.initialize(producer)
            try await fixture.publish("before-1", by: producer, commits: true)
            try await fixture.publish("aborted-1", by: producer, commits: false)
            try await fixture.withStream {
                $0.ringBytes = 20_000
            } _: { feed, server in
                let client = try await EventClient(server.port)
                try await client.waitForStart()
                let waiter = feed.wait(for: "aborted-2")
                try await fixture.publish("aborted-2", by: producer, commits: false)
                try await fixture.publish("now-1", by: producer, commits: true)
                #expect(try await client.jobs(2) == ["now-1", "now-1"])
                waiter.leave()
                await #expect(throws: CancellationError.self) { try await waiter.end() }
                let start = TopicCursor([0, 0]).text
                let memory = try await EventClient(server.port, from: start)
                #expect(try await memory.jobs(4).sorted() == ["before-1", "before-1", "now-1", "now-1"])
                #expect(fixture.metrics.value(of: "halcyon_gateway_event_replays_total") == 0)
                var live: [String] = []
                for number in 0..<100 {
                    try await fixture.publish("\(number)", by: producer, commits: number % 2 == 0)
                    // A client that falls behind the ring buffer is dropped.
                    if number % 2 == 0 { live += try await client.jobs(2) }
                }
                let even = stride(from: 0, to: 100, by: 2).flatMap { ["\($0)", "\($0)"] }.sorted()
                #expect(live.sorted() == even)
                let replayed = try await EventClient(server.port, from: start)
                let all = (["before-1", "before-1", "now-1", "now-1"] + even).sorted()
                #expect(try await replayed.jobs(104).sorted() == all)
                #expect(fixture.metrics.value(of: "halcyon_gateway_event_replays_total") == 1)
                #expect(fixture.metrics.value(of: "halcyon_gateway_event_gaps_total") == 0)
            }
            await producer.close()
        }
    }

    @Test func followsAddedPartitions() async throws {
        let apache = try #require(SharedApacheKafka.current)
        let script = try #require(ApacheKafka.home) + "/bin/kafka-topics.sh"
        try await EventFixture.with(apache: apache, partitions: 1) { fixture in
            try await fixture.withStream {
                $0.partitionInterval = .milliseconds(100)
            } _: { feed, server in
                let client = try await EventClient(server.port)
                try await client.waitForStart()
                let start = client.lastEventID
                try await fixture.publish("a", partition: 0)
                #expect(try await client.jobs(1) == ["a"])
                let exit = try await ChildProcess.start(
                    script,
                    [
                        "--bootstrap-server", fixture.brokers, "--alter", "--topic", fixture.topics.events,
                        "--partitions",
                        "3",
                    ]
                ).exit()
                #expect(exit == .code(0))
                let admin = try Admin(properties: ["bootstrap.servers": fixture.brokers])
                // The controller has added the partitions, and the broker learns of them a moment later.
                try await until("the broker knows the partitions") {
                    try await admin.metadata(within: .seconds(10)).topics[fixture.topics.events]?.count == 3
                }
                await admin.close()
                let waiter = feed.wait(for: "b")
                // An existing producer would learn of the partition minutes later.
                let producer = try Producer(properties: ["bootstrap.servers": fixture.brokers])
                try await producer.send(
                    ProducerRecord(
                        topic: fixture.topics.events, partition: 2, key: Array("b".utf8),
                        value: Array(EventFixture.event("b").utf8)))
                await producer.close()
                #expect(try await waiter.end().event.type == "ready")
                #expect(try await client.jobs(1) == ["b"])
                // A cursor from before the partition was added.
                let resumed = try await EventClient(server.port, from: start)
                #expect(try await resumed.jobs(2).sorted() == ["a", "b"])
            }
        }
    }

    @Test(.killableApacheKafka) func missesNoEventsWhenTheBrokerCrashes() async throws {
        let apache = try #require(SharedApacheKafka.current)
        try await EventFixture.with(apache: apache, partitions: 2) { fixture in
            try await fixture.withStream { feed, server in
                let client = try await EventClient(server.port)
                try await client.waitForStart()
                for number in 0..<20 { try await fixture.publish("\(number)") }
                #expect(try await client.jobs(20).count == 20)
                await apache.kill()
                try await until("the feed has lost its connection") { !feed.isFollowing }
                // Streams start even if no broker is available.
                let other = try await EventClient(server.port, from: client.lastEventID)
                try await apache.start()
                for number in 20..<40 { try await fixture.publish("\(number)") }
                let expected = (20..<40).map(String.init)
                #expect(try await client.jobs(20).sorted() == expected)
                #expect(try await other.jobs(20).sorted() == expected)
                try await until("the feed follows again") { feed.isFollowing }
            }
        }
    }
}

extension EventFixture {
    fileprivate func initialize(_ producer: TransactionalProducer) async throws {
        try await until("the producer is initialized") {
            try await producer.initialize(within: .seconds(10))
            return true
        }
    }

    /// Publishes an event to both partitions in a transaction, and commits or aborts it.
    fileprivate func publish(_ job: String, by producer: TransactionalProducer, commits: Bool) async throws {
        try await producer.begin()
        let sends = await producer.send(
            (0..<2).map { partition in
                ProducerRecord(
                    topic: topics.events, partition: partition, key: Array(job.utf8), value: Array(Self.event(job).utf8)
                )
            })
        // An abort that arrives before its records is rejected.
        #expect(await sends.failures().isEmpty)
        if commits {
            try await producer.commit(within: .patience)
        } else {
            try await producer.abort(within: .patience)
        }
    }
}
