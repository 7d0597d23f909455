import Formats
import Glibc
import HalcyonCluster
import HalcyonModel
import HalcyonNotify
import Kafka
import Redis
import TestSupport
import Testing
import Threads

/// Committed events on Redis' channels.
@Suite(.takesTurns) struct EventRelayTests {
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
        _ ground: NotifyGround, _ body: (RedisSubscriber) async throws -> Void
    ) async throws {
        let subscriber = RedisSubscriber(RedisEndpoint(loopbackPort: ground.redis.port))
        let result: Result<Void, any Error>
        do { result = .success(try await body(subscriber)) } catch { result = .failure(error) }
        await subscriber.close()
        try result.get()
    }

    @Test func subscribersHearOfAllJobsOrOfOneInTheOrderOfItsEvents() async throws {
        try await NotifyGround.with { ground in
            try await listening(ground) { subscriber in
                let all = try await Ear(subscriber, "halcyon:events")
                let one = try await Ear(subscriber, "halcyon:events:job 7")
                try await ground.withNotifier {
                    for number in 0..<200 {
                        try await ground.tell(ground.record("job \(number % 20)", "started", data: #","n":\#(number)"#))
                    }
                    var purged = ground.record("", "purged")
                    purged.key = nil
                    try await ground.tell(purged)
                    try await until("all are heard") { all.all.count >= 201 && one.all.count >= 10 }
                    #expect(ground.count("notifications", "published") == 201)
                }
                #expect(
                    one.all
                        == (0..<10).map {
                            NotifyGround.event("job 7", "started", data: #","n":\#(7 + 20 * $0)"#)
                        })
                #expect(all.all.count == 201 && all.all.contains(NotifyGround.event("", "purged")))
                #expect(all.all.filter { $0.contains(#""job 7""#) } == one.all)
            }
        }
    }

    @Test func whileRedisIsAwayTheyWaitAndNoneIsPassedOver() async throws {
        try await NotifyGround.with(partitions: 1) { ground in
            try await listening(ground) { subscriber in
                let ear = try await Ear(subscriber, "halcyon:events")
                try await ground.withNotifier({ $0.consumer.window = 16 }) {
                    try await ground.tell(ground.record("before"))
                    try await until("the first is heard") { ear.all.count == 1 }
                    ground.redis.process.send(SIGSTOP)
                    for number in 0..<40 { try await ground.tell(ground.record("\(number)")) }
                    // Longer than a command may wait for its reply.
                    try await Task.sleep(for: .seconds(3))
                    #expect(ground.count("notifications", "published") == 1)
                    ground.redis.process.send(SIGCONT)
                    try await until("all are heard") { Set(ear.all).count == 41 }
                    try await until("all are counted") { ground.count("notifications", "published") == 41 }
                    // Some may come again, but none before those that stand before it.
                    var seen: Set<String> = []
                    let firsts = ear.all.filter { seen.insert($0).inserted }
                    #expect(firsts == [NotifyGround.event("before")] + (0..<40).map { NotifyGround.event("\($0)") })
                    #expect(ground.count("notifications", "stale") == 0)
                }
            }
        }
    }

    @Test func whatIsTooOldIsNotTold() async throws {
        try await NotifyGround.with(partitions: 1) { ground in
            try await listening(ground) { subscriber in
                let ear = try await Ear(subscriber, "halcyon:events")
                let now = Timestamp.now.milliseconds
                for number in 0..<5 {
                    try await ground.tell(ground.record("old \(number)", timestamp: now - 3_700_000))
                }
                try await ground.tell(ground.record("young", timestamp: now - 3_000_000))
                try await ground.withNotifier {
                    try await until("the young one is heard") { !ear.all.isEmpty }
                    #expect(ground.count("notifications", "stale") == 5)
                }
                #expect(ear.all == [NotifyGround.event("young")])
            }
        }
    }

    @Test func whatWasToldIsNotToldAgainByTheNextOne() async throws {
        try await NotifyGround.with { ground in
            try await listening(ground) { subscriber in
                let ear = try await Ear(subscriber, "halcyon:events")
                for number in 0..<3 {
                    try await ground.withNotifier {
                        try await ground.tell(ground.record("\(number)"))
                        try await until("it is heard") { ear.all.count > number }
                    }
                }
                #expect(ear.all == (0..<3).map { NotifyGround.event("\($0)") })
            }
        }
    }

    @Test func withoutItNothingIsPublished() async throws {
        try await NotifyGround.with { ground in
            try await listening(ground) { subscriber in
                let ear = try await Ear(subscriber, "halcyon:events")
                try await ground.withNotifier({ $0.pubSub = nil }) { try await ground.tell(ground.record("a")) }
                try await ground.withNotifier { try await until("it is heard") { !ear.all.isEmpty } }
                #expect(ear.all.count == 1)
            }
        }
    }
}

/// What was not committed is not told.
@Suite(.takesTurns, .sharedApacheKafka, .enabled(if: ApacheKafka.isAvailable)) struct CommittedEventsTests {
    @Test func eventsOfAbortedTransactionsAreNotTold() async throws {
        let kafka = try #require(SharedApacheKafka.current)
        let topics = Topics(prefix: "committed.")
        let admin = try Admin(properties: ["bootstrap.servers": kafka.bootstrapServers])
        _ = try await admin.create(topics.all.map { NewTopic($0, partitions: 1, replication: 1) })
        await admin.close()
        let ground = try await NotifyGround(topics: topics, brokers: kafka.bootstrapServers)
        let subscriber = RedisSubscriber(RedisEndpoint(loopbackPort: ground.redis.port))
        let messages = try await subscriber.subscribe("halcyon:events")
        let producer = try TransactionalProducer(
            properties: ["bootstrap.servers": kafka.bootstrapServers, "transactional.id": "committed"])
        try await producer.initialize(within: .seconds(120))
        try await ground.withNotifier {
            for (job, isCommitted) in [("aborted", false), ("committed", true)] {
                try await producer.begin()
                // The brokers have it, committed or not.
                #expect(await producer.send([ground.record(job)]).failures().isEmpty)
                if isCommitted {
                    try await producer.commit(within: .seconds(120))
                } else {
                    try await producer.abort(within: .seconds(120))
                }
            }
            var iterator = messages.makeAsyncIterator()
            let first = await iterator.next()
            #expect(first.map { String(decoding: $0.payload, as: UTF8.self) } == NotifyGround.event("committed"))
        }
        await producer.close()
        await subscriber.close()
        await ground.close()
    }
}
