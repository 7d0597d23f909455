import Concurrency
import Formats
import Glibc
import HalcyonCluster
import HalcyonModel
import HalcyonNotifications
import Kafka
import Redis
import TestSupport
import Testing

/// Committed events on Redis' channels.
@Suite(.limitedParallelism) struct EventRelayTests {
    /// What comes on a channel.
    private final class Ear: Sendable {
        private let heard = Lock<[String]>([])
        private let task: Task<Void, Never>

        init(_ subscriber: RedisSubscriber, _ channel: String) async throws {
            let messages = try await subscriber.subscribe(channel, keeping: 10_000)
            let heard = heard
            task = Task {
                for await message in messages {
                    heard.withLock { $0.append(String(decoding: message.payload, as: UTF8.self)) }
                }
            }
        }

        var all: [String] { heard.withLock { $0 } }
    }

    private func listening(
        _ fixture: NotificationFixture, _ body: (RedisSubscriber) async throws -> Void
    ) async throws {
        let subscriber = RedisSubscriber(RedisEndpoint(loopbackPort: fixture.redis.port))
        let result: Result<Void, any Error>
        do { result = .success(try await body(subscriber)) } catch { result = .failure(error) }
        await subscriber.close()
        try result.get()
    }

    @Test func subscribersHearOfAllJobsOrOfOneInTheOrderOfItsEvents() async throws {
        try await NotificationFixture.with { fixture in
            try await listening(fixture) { subscriber in
                let all = try await Ear(subscriber, "halcyon:events")
                let one = try await Ear(subscriber, "halcyon:events:job 7")
                try await fixture.withNotifier {
                    for number in 0..<200 {
                        try await fixture.tell(
                            fixture.record("job \(number % 20)", "started", data: #","n":\#(number)"#))
                    }
                    var purged = fixture.record("", "purged")
                    purged.key = nil
                    try await fixture.tell(purged)
                    try await until("all are heard") { all.all.count >= 201 && one.all.count >= 10 }
                    #expect(fixture.count("notifications", "published") == 201)
                }
                #expect(
                    one.all
                        == (0..<10).map {
                            NotificationFixture.event("job 7", "started", data: #","n":\#(7 + 20 * $0)"#)
                        })
                #expect(all.all.count == 201 && all.all.contains(NotificationFixture.event("", "purged")))
                #expect(all.all.filter { $0.contains(#""job 7""#) } == one.all)
            }
        }
    }

    @Test func whileRedisIsAwayTheyWaitAndNoneIsPassedOver() async throws {
        try await NotificationFixture.with(partitions: 1) { fixture in
            try await listening(fixture) { subscriber in
                let ear = try await Ear(subscriber, "halcyon:events")
                try await fixture.withNotifier({ $0.consumer.window = 16 }) {
                    try await fixture.tell(fixture.record("before"))
                    try await until("the first is heard") { ear.all.count == 1 }
                    fixture.redis.process.send(SIGSTOP)
                    for number in 0..<40 { try await fixture.tell(fixture.record("\(number)")) }
                    // Longer than a command may wait for its reply.
                    try await Task.sleep(for: .seconds(3))
                    #expect(fixture.count("notifications", "published") == 1)
                    fixture.redis.process.send(SIGCONT)
                    try await until("all are heard") { Set(ear.all).count == 41 }
                    try await until("all are counted") { fixture.count("notifications", "published") == 41 }
                    // Some may come again, but none before those that stand before it.
                    var seen: Set<String> = []
                    let firsts = ear.all.filter { seen.insert($0).inserted }
                    #expect(
                        firsts == [NotificationFixture.event("before")]
                            + (0..<40).map { NotificationFixture.event("\($0)") })
                    #expect(fixture.count("notifications", "stale") == 0)
                }
            }
        }
    }

    @Test func whatIsTooOldIsNotTold() async throws {
        try await NotificationFixture.with(partitions: 1) { fixture in
            try await listening(fixture) { subscriber in
                let ear = try await Ear(subscriber, "halcyon:events")
                let now = Timestamp.now.milliseconds
                for number in 0..<5 {
                    try await fixture.tell(fixture.record("old \(number)", timestamp: now - 3_700_000))
                }
                try await fixture.tell(fixture.record("young", timestamp: now - 3_000_000))
                try await fixture.withNotifier {
                    try await until("the young one is heard") { !ear.all.isEmpty }
                    #expect(fixture.count("notifications", "stale") == 5)
                }
                #expect(ear.all == [NotificationFixture.event("young")])
            }
        }
    }

    @Test func whatWasToldIsNotToldAgainByTheNextOne() async throws {
        try await NotificationFixture.with { fixture in
            try await listening(fixture) { subscriber in
                let ear = try await Ear(subscriber, "halcyon:events")
                for number in 0..<3 {
                    try await fixture.withNotifier {
                        try await fixture.tell(fixture.record("\(number)"))
                        try await until("it is heard") { ear.all.count > number }
                    }
                }
                #expect(ear.all == (0..<3).map { NotificationFixture.event("\($0)") })
            }
        }
    }

    @Test func withoutItNothingIsPublished() async throws {
        try await NotificationFixture.with { fixture in
            try await listening(fixture) { subscriber in
                let ear = try await Ear(subscriber, "halcyon:events")
                try await fixture.withNotifier({ $0.pubSub = nil }) { try await fixture.tell(fixture.record("a")) }
                try await fixture.withNotifier { try await until("it is heard") { !ear.all.isEmpty } }
                #expect(ear.all.count == 1)
            }
        }
    }
}

/// What was not committed is not told.
@Suite(.limitedParallelism, .sharedApacheKafka, .enabled(if: ApacheKafka.isAvailable)) struct CommittedEventsTests {
    @Test func eventsOfAbortedTransactionsAreNotTold() async throws {
        let kafka = try #require(SharedApacheKafka.current)
        let topics = Topics(prefix: "committed.")
        let admin = try Admin(properties: ["bootstrap.servers": kafka.bootstrapServers])
        _ = try await admin.create(topics.all.map { NewTopic($0, partitions: 1, replication: 1) })
        await admin.close()
        let fixture = try await NotificationFixture(topics: topics, brokers: kafka.bootstrapServers)
        let subscriber = RedisSubscriber(RedisEndpoint(loopbackPort: fixture.redis.port))
        let messages = try await subscriber.subscribe("halcyon:events")
        let producer = try TransactionalProducer(
            properties: ["bootstrap.servers": kafka.bootstrapServers, "transactional.id": "committed"])
        try await producer.initialize(within: .seconds(120))
        try await fixture.withNotifier {
            for (job, isCommitted) in [("aborted", false), ("committed", true)] {
                try await producer.begin()
                // The brokers have it, committed or not.
                #expect(await producer.send([fixture.record(job)]).failures().isEmpty)
                if isCommitted {
                    try await producer.commit(within: .seconds(120))
                } else {
                    try await producer.abort(within: .seconds(120))
                }
            }
            var iterator = messages.makeAsyncIterator()
            let first = await iterator.next()
            #expect(first.map { String(decoding: $0.payload, as: UTF8.self) } == NotificationFixture.event("committed"))
        }
        await producer.close()
        await subscriber.close()
        await fixture.close()
    }
}
