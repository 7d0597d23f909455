import Concurrency
import HalcyonCluster
import HalcyonModel
import HalcyonSources
import Kafka
import Redis
import Telemetry
import TestSupport
import Testing

@testable import HalcyonNotifications

/// Purges that are reported to CDNs, with real requests.
@Suite(.limitedParallelism) struct PurgeHookTests {
    /// Returns a hook for an origin of the test, whose requests are logged with their tags as the body.
    private static func hook(_ origin: RawOrigin, _ more: String = "") throws -> PurgeHook {
        try PurgeHook(
            definition: """
                {"url":"\(origin.url("/hook"))","headers":{"Authorization":"Bearer SECRET","X-Id":"{{id}}"},\
                "body":"{{tags.spaces}}"\(more)}
                """)
    }

    private static func tags(_ origin: RawOrigin) -> [Set<String>] {
        origin.requests.map { Set(String(decoding: $0.body, as: UTF8.self).split(separator: " ").map(String.init)) }
    }

    @Test func everyHookReceivesEachPurge() async throws {
        let (one, other) = (
            RawOrigin { _ in RawOrigin.answer() }, RawOrigin { _ in RawOrigin.answer("204 No Content") }
        )
        try await NotificationFixture.with { fixture in
            try await fixture.withNotifier {
                $0.pubSub = nil
                $0.purgeHooks = ["one": try! Self.hook(one, #","linger":"0s""#), "other": try! Self.hook(other)]
            } _: {
                try await fixture.publish(fixture.record("a"))
                let redis = RedisClient(try RedisEndpoint(fixture.redis.url))
                let purges = PurgeService(redis, nil, fixture.producer, topics: fixture.topics)
                let purged = try await purges.run(Purge(.tag("a b"), of: "shop"))
                await redis.close()
                #expect(purged.cacheTags == ["shop/a%20b"])
                try await until("both hooks are notified") { fixture.count("purge_hooks", "delivered") == 2 }
                for origin in [one, other] {
                    #expect(Self.tags(origin) == [["shop/a%20b"]])
                    let request = try #require(origin.requests.first)
                    #expect(request.head.hasPrefix("POST /hook HTTP/1.1\r\n"))
                    #expect(request.header("authorization") == "Bearer SECRET")
                    // These are no webhooks.
                    #expect(request.header("webhook-id") == nil && request.header("webhook-signature") == nil)
                }
                #expect(fixture.count("webhooks", "delivered") == 0)
            }
        }
        try await one.stop()
        try await other.stop()
    }

    @Test func severalPurgesShareARequest() async throws {
        let origin = RawOrigin { _ in RawOrigin.answer() }
        try await NotificationFixture.with { fixture in
            try await fixture.withNotifier {
                $0.pubSub = nil
                $0.purgeHooks = ["cdn": try! Self.hook(origin, #","batch":4,"linger":"60s""#)]
            } _: {
                // In any order, two of them have three tags together.
                for tags in [["a", "b"], ["a", "c"], ["d"]] { try await fixture.publishPurge(of: tags) }
                try await until("the request is full") { fixture.count("purge_hooks", "delivered") == 3 }
                #expect(Self.tags(origin) == [["a", "b", "c", "d"]])
            }
        }
        try await origin.stop()
    }

    @Test func failedPurgesAreRetriedPerHook() async throws {
        let count = Lock(0)
        let bad = RawOrigin { _ in
            let attempt = count.withLock { count in
                count += 1
                return count
            }
            return attempt > 2 ? RawOrigin.answer() : RawOrigin.answer("429 Too Many Requests", ["Retry-After: 0"])
        }
        let good = RawOrigin { _ in RawOrigin.answer() }
        try await NotificationFixture.with(webhookDelays: [.milliseconds(100)]) { fixture in
            try await fixture.withNotifier {
                $0.pubSub = nil
                $0.purgeHooks = ["bad": try! Self.hook(bad), "good": try! Self.hook(good)]
            } _: {
                try await fixture.publishPurge(of: ["a"])
                try await until("both hooks are notified") { fixture.count("purge_hooks", "delivered") == 2 }
                #expect(Set(Self.tags(bad)) == [["a"]] && bad.requests.count >= 3 && good.requests.count == 1)
                // The same purge in the same request.
                #expect(Set(bad.requests.map { $0.header("x-id") }).count == 1)
                // Counted after the record of the retry is published, which may already have been consumed.
                try await until("the retries are counted") { fixture.count("purge_hooks", "retried") >= 2 }
                #expect(fixture.count("webhooks", "retried") == 0)
            }
        }
        try await bad.stop()
        try await good.stop()
    }

    @Test func purgesThatAreGivenUpBecomeReplayableDeadLetters() async throws {
        let isUp = Lock(false)
        let origin = RawOrigin { _ in RawOrigin.answer(isUp.withLock { $0 } ? "200 OK" : "403 Forbidden") }
        let sink = TextSink()
        try await NotificationFixture.with(webhookDelays: [.milliseconds(100)], partitions: 1) { fixture in
            try await fixture.withNotifier(
                {
                    $0.pubSub = nil
                    $0.purgeHooks = ["cdn": try! Self.hook(origin, #","attempts":2,"linger":"0s""#)]
                }, log: Log(level: .debug, sink: sink)
            ) {
                try await fixture.publishPurge(of: ["a"])
                let letter = try #require(try await fixture.deadLetters(1).first)
                #expect(letter.code == "http_error" && letter.history?.count == 2 && letter.reason == .attempts)
                #expect(letter.webhook(fixture.topics) == "purge/cdn")
                // Counted after the dead letter is published.
                try await until("the dead letter is counted") { fixture.count("purge_hooks", "dead") == 1 }
                isUp.withLock { $0 = true }
                try await fixture.publish(try Replay.record(of: letter, fixture.topics))
                try await until("the hook is notified") { fixture.count("purge_hooks", "delivered") == 1 }
                #expect(Self.tags(origin).last == ["a"])
            }
            // Neither logs nor dead letters contain the secret or the URL of the hook.
            #expect(sink.text.contains("purge/cdn") && !sink.text.contains("SECRET") && !sink.text.contains("/hook"))
        }
        try await origin.stop()
    }

    @Test func cacheThatIsDownDelaysPurgesButNotWebhooks() async throws {
        let isUp = Lock(false)
        let cdn = RawOrigin { _ in isUp.withLock { $0 } ? RawOrigin.answer() : [.reset] }
        let shop = RawOrigin { _ in RawOrigin.answer() }
        try await NotificationFixture.with(webhookDelays: [.milliseconds(200)], partitions: 1) { fixture in
            try await fixture.withNotifier {
                $0.setTargets(["shop": shop])
                $0.webhooks.limits.failures = 1
                $0.webhooks.retries.attempts = 1000
                $0.purgeHooks = ["cdn": try! Self.hook(cdn, #","linger":"0s""#)]
            } _: {
                for number in 0..<5 { try await fixture.publishPurge(of: ["\(number)"]) }
                try await fixture.publish(fixture.record("a", for: "shop"))
                try await until("the webhook is delivered") { fixture.count("webhooks", "delivered") == 1 }
                isUp.withLock { $0 = true }
                try await until("the hook is notified") { fixture.count("purge_hooks", "delivered") == 5 }
                #expect(fixture.count("purge_hooks", "dead") == 0)
            }
        }
        try await cdn.stop()
        try await shop.stop()
    }

    @Test func unknownHooksAndPurgesWithoutTagsCauseNoRequest() async throws {
        let origin = RawOrigin { _ in RawOrigin.answer() }
        try await NotificationFixture.with(webhookDelays: [.milliseconds(100)], partitions: 1) { fixture in
            try await fixture.withNotifier {
                $0.pubSub = nil
                $0.webhooks.retries.attempts = 1
                $0.purgeHooks = ["cdn": try! Self.hook(origin, #","linger":"0s""#)]
            } _: {
                // As published by an older version.
                try await fixture.publishPurge(of: [])
                var event = fixture.record("x", "purged")
                event.headers = [RecordHeader("halcyon-webhook", "purge/other")]
                try await fixture.publish(event)
                event = fixture.purge(of: ["b"])
                event.headers = [RecordHeader("halcyon-webhook", "purge/other")]
                try await fixture.publish(event)
                let letter = try #require(try await fixture.deadLetters(1).first)
                #expect(letter.message.contains("no purge hook has the name other"))
                try await fixture.publishPurge(of: ["c"])
                try await until("the hook is notified") { fixture.count("purge_hooks", "delivered") == 1 }
                #expect(Self.tags(origin) == [["c"]])
            }
        }
        try await origin.stop()
    }

    @Test func deniedHostsAreNotContacted() async throws {
        let origin = RawOrigin { _ in RawOrigin.answer() }
        try await NotificationFixture.with(webhookDelays: [.milliseconds(100)], partitions: 1) { fixture in
            try await fixture.withNotifier {
                $0.pubSub = nil
                $0.policy = AddressPolicy(deny: ["127.0.0.1"])
                $0.purgeHooks = ["cdn": try! Self.hook(origin, #","linger":"0s""#)]
            } _: {
                try await fixture.publishPurge(of: ["a"])
                #expect(try await fixture.deadLetters(1).first?.code == "blocked_address")
                #expect(origin.connections == 0)
            }
        }
        try await origin.stop()
    }

    /// The requests of the templates as they arrive at a server.
    @Test func templatesSendTheRequestsOfTheirAPIs() async throws {
        let origin = RawOrigin { _ in RawOrigin.answer() }
        let base = origin.url("/")
        let definitions = [
            #"{"template":"cloudflare","zone":"z","token":"t","url":"\#(base)"}"#,
            #"{"template":"fastly","service":"s","token":"t","url":"\#(base)"}"#,
            #"{"template":"cloudfront","distribution":"d","accessKey":"AK","secretKey":"SK","url":"\#(base)"}"#,
            #"{"template":"varnish","url":"\#(base)"}"#,
        ]
        try await NotificationFixture.with { fixture in
            try await fixture.withNotifier {
                $0.pubSub = nil
                for (number, text) in definitions.enumerated() {
                    $0.purgeHooks["\(number)"] = try! PurgeHook(definition: text)
                }
            } _: {
                try await fixture.publishPurge(of: ["a", "b"])
                try await until("all hooks are notified") { fixture.count("purge_hooks", "delivered") == 4 }
            }
        }
        let lines = Set(origin.requests.map { String($0.head.prefix { $0 != "\r\n" }) })
        #expect(
            lines == [
                "POST /client/v4/zones/z/purge_cache HTTP/1.1", "POST /service/s/purge HTTP/1.1",
                "POST /2020-05-31/distribution/d/invalidation HTTP/1.1", "PURGE / HTTP/1.1",
            ])
        let signed = try #require(origin.requests.first { $0.path.hasPrefix("/2020") })
        let authorization = try #require(signed.header("authorization"))
        #expect(authorization.hasPrefix("AWS4-HMAC-SHA256 Credential=AK/"))
        #expect(authorization.contains("/us-east-1/cloudfront/aws4_request"))
        #expect(authorization.contains("x-amz-content-sha256"))
        let varnish = try #require(origin.requests.first { $0.head.hasPrefix("PURGE") })
        #expect(varnish.header("xkey-purge") == "a b" && varnish.header("content-length") == nil)
        try await origin.stop()
    }

    @Test(arguments: [[.ready], [.ready, .purged]] as [Set<Event.Kind>])
    func webhooksReceivePurgesIfTheirTypeIsConfigured(kinds: Set<Event.Kind>) async throws {
        let (shop, billing) = (RawOrigin { _ in RawOrigin.answer() }, RawOrigin { _ in RawOrigin.answer() })
        let expected = kinds.contains(.purged) ? 1 : 0
        try await NotificationFixture.with(partitions: 1) { fixture in
            let purge = fixture.purge(of: ["a"])
            try await fixture.withNotifier {
                $0.setTargets(["shop": shop, "billing": billing])
                $0.webhooks.kinds = kinds
            } _: {
                try await fixture.publish(purge)
                try await fixture.publish(fixture.record("job", for: "shop"))
                try await until("the events are delivered") {
                    fixture.count("webhooks", "delivered") == 2 * expected + 1
                }
            }
            for origin in [shop, billing] {
                let requests = origin.requests.filter { $0.event?.hasPrefix("purge-") == true }
                #expect(requests.count == expected)
                for request in requests {
                    #expect(request.body == purge.value)
                    #expect(request.header("webhook-signature")?.hasPrefix("v1,") == true)
                }
            }
        }
        try await shop.stop()
        try await billing.stop()
    }
}

/// Keeps all entries of a log as text.
private final class TextSink: LogSink {
    private let lines = Lock("")

    var text: String { lines.withLock { $0 } }

    func log(_ record: LogRecord) { lines.withLock { $0 += "\(record)\n" } }
}

extension NotificationFixture {
    /// Returns the event of a purge with these tags.
    func purge(of cacheTags: [String]) -> ProducerRecord {
        let purged = Purged(.tag("t"), count: 0, cacheTags: cacheTags)
        let id = "purge-\(UInt64.random(in: .min ... .max))"
        let event = Event(id: id, time: 1, subject: nil, jobID: nil, body: .purged(purged))
        return EventPublisher.record(of: event, topics)
    }

    func publishPurge(of cacheTags: [String]) async throws { try await publish(purge(of: cacheTags)) }
}
