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

/// Publishing committed events to Redis channels.
@Suite(.limitedParallelism) struct EventRelayTests {
    /// Records the messages of a channel.
    private final class ChannelRecorder: Sendable {
        private let payloads = Lock<[String]>([])
        private let task: Task<Void, Never>

        init(_ subscriber: RedisSubscriber, _ channel: String) async throws {
            let stream = try await subscriber.subscribe(channel, keeping: 10_000)
            let payloads = payloads
            task = Task {
                for await message in stream {
                    payloads.withLock { $0.append(String(decoding: message.payload, as: UTF8.self)) }
                }
            }
        }

        var messages: [String] { payloads.withLock { $0 } }
    }

    private func withSubscriber(
        _ fixture: NotificationFixture, _ body: (RedisSubscriber) async throws -> Void
    ) async throws {
        let subscriber = RedisSubscriber(try RedisEndpoint(fixture.redis.url))
        let result: Result<Void, any Error>
        do { result = .success(try await body(subscriber)) } catch { result = .failure(error) }
        await subscriber.close()
        try result.get()
    }

    @Test func publishesToAllAndPerJobChannelsInOrder() async throws {
        try await NotificationFixture.with { fixture in
            try await withSubscriber(fixture) { subscriber in
                let all = try await ChannelRecorder(subscriber, "halcyon:events")
                let one = try await ChannelRecorder(subscriber, "halcyon:events:job 7")
                try await fixture.withNotifier {
                    for number in 0..<200 {
                        try await fixture.publish(
                            fixture.record("job \(number % 20)", "started", data: #","n":\#(number)"#))
                    }
                    var purged = fixture.record("", "purged")
                    purged.key = nil
                    try await fixture.publish(purged)
                    try await until("all events are received") { all.messages.count >= 201 && one.messages.count >= 10 }
                    // Subscribers may receive an event before the notifier has the reply of Redis.
                    try await until("all events are counted") { fixture.count("notifications", "published") >= 201 }
                    #expect(fixture.count("notifications", "published") == 201)
                }
                #expect(
                    one.messages
                        == (0..<10).map {
                            NotificationFixture.event("job 7", "started", data: #","n":\#(7 + 20 * $0)"#)
                        })
                #expect(all.messages.count == 201 && all.messages.contains(NotificationFixture.event("", "purged")))
                #expect(all.messages.filter { $0.contains(#""job 7""#) } == one.messages)
            }
        }
    }

    @Test(.extended) func waitsForRedisAndSkipsNoEvent() async throws {
        try await NotificationFixture.with(partitions: 1) { fixture in
            try await withSubscriber(fixture) { subscriber in
                let recorder = try await ChannelRecorder(subscriber, "halcyon:events")
                try await fixture.withNotifier({ ($0.consumer.window, $0.redis.timeout) = (16, nil) }) {
                    try await fixture.publish(fixture.record("before"))
                    // Counted when the notifier has the reply of Redis.
                    try await until("the first event is published") {
                        recorder.messages.count == 1 && fixture.count("notifications", "published") == 1
                    }
                    fixture.redis.process.send(SIGSTOP)
                    for number in 0..<40 { try await fixture.publish(fixture.record("\(number)")) }
                    // Longer than the command timeout.
                    try await Task.sleep(for: .seconds(3))
                    #expect(fixture.count("notifications", "published") == 1)
                    fixture.redis.process.send(SIGCONT)
                    try await until("all events are received") { Set(recorder.messages).count == 41 }
                    try await until("all events are counted") { fixture.count("notifications", "published") == 41 }
                    // Events may be repeated, but their first occurrences are in order.
                    var seen: Set<String> = []
                    let firsts = recorder.messages.filter { seen.insert($0).inserted }
                    #expect(
                        firsts == [NotificationFixture.event("before")]
                            + (0..<40).map { NotificationFixture.event("\($0)") })
                    #expect(fixture.count("notifications", "stale") == 0)
                }
            }
        }
    }

    @Test func skipsStaleEvents() async throws {
        try await NotificationFixture.with(partitions: 1) { fixture in
            try await withSubscriber(fixture) { subscriber in
                let recorder = try await ChannelRecorder(subscriber, "halcyon:events")
                let now = Timestamp.now.milliseconds
                for number in 0..<5 {
                    try await fixture.publish(fixture.record("old \(number)", timestamp: now - 3_700_000))
                }
                try await fixture.publish(fixture.record("young", timestamp: now - 3_000_000))
                try await fixture.withNotifier {
                    try await until("the fresh event is received") { !recorder.messages.isEmpty }
                    #expect(fixture.count("notifications", "stale") == 5)
                }
                #expect(recorder.messages == [NotificationFixture.event("young")])
            }
        }
    }

    @Test func nextNotifierRepeatsNoPublishedEvent() async throws {
        try await NotificationFixture.with { fixture in
            try await withSubscriber(fixture) { subscriber in
                let recorder = try await ChannelRecorder(subscriber, "halcyon:events")
                for number in 0..<2 {
                    // It must have time to commit the offset, or the next notifier repeats the event.
                    try await fixture.withNotifier(grace: .seconds(60)) {
                        try await fixture.publish(fixture.record("\(number)"))
                        try await until("the event is published") {
                            recorder.messages.count > number
                                && fixture.count("notifications", "published") == number + 1
                        }
                    }
                }
                #expect(recorder.messages == (0..<2).map { NotificationFixture.event("\($0)") })
            }
        }
    }

    @Test func publishesNothingWhenDisabled() async throws {
        try await NotificationFixture.with { fixture in
            try await withSubscriber(fixture) { subscriber in
                let recorder = try await ChannelRecorder(subscriber, "halcyon:events")
                try await fixture.withNotifier({ $0.pubSub = nil }) { try await fixture.publish(fixture.record("a")) }
                try await fixture.withNotifier {
                    try await until("the event is received") { !recorder.messages.isEmpty }
                }
                #expect(recorder.messages.count == 1)
            }
        }
    }
}

/// Publishing of transactional events.
@Suite(.limitedParallelism, .sharedApacheKafka, .enabled(if: ApacheKafka.isAvailable)) struct CommittedEventsTests {
    @Test func doesNotPublishAbortedEvents() async throws {
        let kafka = try #require(SharedApacheKafka.current)
        let topics = Topics(prefix: "committed.")
        try await kafka.create(topics.all, partitions: 1)
        let fixture = try await NotificationFixture(
            topics: topics, brokers: kafka.bootstrapServers, session: .seconds(60))
        let subscriber = RedisSubscriber(try RedisEndpoint(fixture.redis.url))
        let messages = try await subscriber.subscribe("halcyon:events")
        let producer = try TransactionalProducer(
            properties: ["bootstrap.servers": kafka.bootstrapServers, "transactional.id": "committed"])
        try await producer.initialize(within: .patience)
        try await fixture.withNotifier {
            for (job, isCommitted) in [("aborted", false), ("committed", true)] {
                try await producer.begin()
                // The brokers store the record in both cases.
                #expect(await producer.send([fixture.record(job)]).failures().isEmpty)
                if isCommitted {
                    try await producer.commit(within: .patience)
                } else {
                    try await producer.abort(within: .patience)
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
