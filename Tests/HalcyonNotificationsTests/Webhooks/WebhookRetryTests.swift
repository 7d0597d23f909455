import Concurrency
import HalcyonCluster
import HalcyonModel
import HalcyonSources
import Kafka
import TestSupport
import Testing

@testable import HalcyonNotifications

/// Retries of webhooks that reject events or are unavailable.
@Suite(.limitedParallelism) struct WebhookRetryTests {
    @Test func retriesWithTheSameEventID() async throws {
        let origin = RawOrigin.flaky(2, "500 Internal Server Error")
        try await NotificationFixture.with { fixture in
            try await fixture.withNotifier({ $0.setTargets(["shop": origin]) }) {
                try await fixture.publish(fixture.record("a", for: "shop"))
                try await until("the event is delivered") { fixture.count("webhooks", "delivered") == 1 }
            }
            #expect(Set(origin.requests.map(\.event)) == ["halcyon.jobs-0-a-ready"] && origin.requests.count >= 3)
            #expect(fixture.count("webhooks", "retried") >= 2 && fixture.count("webhooks", "dead") == 0)
        }
        try await origin.stop()
    }

    @Test func retriesThroughTopicsHonoringRetryAfter() async throws {
        let origin = RawOrigin.flaky(3, "503 Service Unavailable", ["Retry-After: 1"])
        try await NotificationFixture.with(webhookDelays: [.milliseconds(200), .seconds(2)]) { fixture in
            try await fixture.withNotifier {
                $0.setTargets(["shop": origin])
                $0.webhooks.retries.inProcess = 0
            } _: {
                try await fixture.publish(fixture.record("a", for: "shop"))
                try await until("the event is delivered") { fixture.count("webhooks", "delivered") == 1 }
            }
            #expect(Set(origin.requests.map(\.event)) == ["halcyon.jobs-0-a-ready"] && origin.requests.count >= 4)
            #expect(Set(origin.requests.map(\.body)) == [Array(NotificationFixture.event("a").utf8)])
            let times = origin.requests.compactMap { $0.header("webhook-timestamp").flatMap { Int($0) } }
            for (time, next) in zip(times, times.dropFirst()) { #expect(next >= time + 1) }
            // Counted after the record of the retry is published, which may already have been consumed.
            try await until("the retries are counted") { fixture.count("webhooks", "retried") >= 3 }
        }
        try await origin.stop()
    }

    @Test func hangingTargetDoesNotDelayOthers() async throws {
        let (dead, good) = (RawOrigin { _ in [.awaitEnd] }, RawOrigin { _ in RawOrigin.answer() })
        try await NotificationFixture.with(partitions: 1) { fixture in
            try await fixture.withNotifier {
                $0.setTargets(["dead": dead, "good": good])
                $0.consumer.window = 32
                // If the good target is late on a busy machine, the event is retried.
                $0.webhooks.timeout = .seconds(10)
                $0.webhooks.limits.concurrency = 2
                $0.webhooks.limits.queue = 4
                $0.webhooks.limits.failures = 2
            } _: {
                for number in 0..<400 {
                    let isGood = number % 8 == 7
                    try await fixture.publish(fixture.record("\(number)", for: isGood ? "good" : "dead"))
                    // Sent one by one, because the queue of the good target might overflow on a busy machine.
                    guard isGood else { continue }
                    try await until("the good target has received the event") {
                        fixture.count("webhooks", "delivered") == (number + 1) / 8
                    }
                }
                #expect(Set(good.requests.map(\.event)).count == 50)
                // Postponed events are in their topic and used no attempt.
                #expect(fixture.count("webhooks", "postponed") > 300 && dead.requests.count < 150)
                #expect(fixture.count("webhooks", "dead") == 0)
            }
        }
        try await dead.stop()
        try await good.stop()
    }

    @Test func deliversPostponedEventsAfterRecovery() async throws {
        let isUp = Lock(false)
        let origin = RawOrigin { _ in
            isUp.withLock { $0 } ? RawOrigin.answer() : RawOrigin.answer("502 Bad Gateway")
        }
        try await NotificationFixture.with(webhookDelays: [.milliseconds(300)]) { fixture in
            try await fixture.withNotifier {
                $0.setTargets(["shop": origin])
                $0.webhooks.retries.attempts = 1000
                $0.webhooks.limits.failures = 2
            } _: {
                for number in 0..<50 { try await fixture.publish(fixture.record("\(number)", for: "shop")) }
                try await until("events are postponed") { fixture.count("webhooks", "postponed") > 30 }
                isUp.withLock { $0 = true }
                try await until("all events are delivered") { fixture.count("webhooks", "delivered") == 50 }
                #expect(fixture.count("webhooks", "dead") == 0)
            }
        }
        try await origin.stop()
    }

    @Test func undeliverableEventBecomesAReplayableDeadLetter() async throws {
        let isUp = Lock(false)
        let origin = RawOrigin { request in
            if isUp.withLock({ $0 }) { return RawOrigin.answer() }
            return RawOrigin.answer(request.event == "halcyon.jobs-0-gone-ready" ? "410 Gone" : "404 Not Found")
        }
        try await NotificationFixture.with(webhookDelays: [.milliseconds(100)], partitions: 1) { fixture in
            try await fixture.withNotifier {
                $0.setTargets(["shop": origin])
                $0.webhooks.retries.attempts = 3
            } _: {
                try await fixture.publish(fixture.record("gone", for: "shop"))
                let gone = try #require(try await fixture.deadLetters(1).first)
                #expect(gone.code == "gone" && gone.reason == .final && gone.history?.count == 1)
                #expect(gone.webhook(fixture.topics) == "shop" && gone.record.value == fixture.record("gone").value)
                #expect(gone.provenance?.topic == "halcyon.events")

                try await fixture.publish(fixture.record("failed", for: "shop"))
                let failed = try #require(try await fixture.deadLetters(2).last)
                #expect(failed.code == "http_error" && failed.message == "the webhook answered 404")
                #expect(failed.reason == .attempts && failed.history?.count == 3)
                // Counted after the dead letter is published.
                try await until("the dead letters are counted") { fixture.count("webhooks", "dead") == 2 }

                isUp.withLock { $0 = true }
                let replay = try Replay.record(of: failed, fixture.topics)
                #expect(replay.topic == "halcyon.webhooks.100ms")
                try await fixture.publish(replay)
                try await until("the event is delivered") { fixture.count("webhooks", "delivered") == 1 }
                #expect(origin.requests.last?.event == "halcyon.jobs-0-failed-ready")
            }
        }
        try await origin.stop()
    }

    @Test func invalidEventsAndUnknownTargetsBecomeDeadLetters() async throws {
        try await NotificationFixture.with(webhookDelays: [.milliseconds(100)], partitions: 1) { fixture in
            try await fixture.withNotifier {
                $0.pubSub = nil
                $0.webhooks.targets = WebhookTargets(
                    urls: ["shop": try! WebURL("http://127.0.0.1:1/")], secrets: [Secrets.one])
                $0.webhooks.retries.attempts = 2
            } _: {
                let webhook = [RecordHeader("halcyon-webhook", "shop")]
                for (count, value) in ["half a {", "{}", #"{"id":"a\r\nb","type":"c"}"#].enumerated() {
                    try await fixture.publish(
                        ProducerRecord(topic: fixture.topics.events, value: Array(value.utf8), headers: webhook))
                    #expect(try await fixture.deadLetters(count + 1).last?.code == "invalid_job")
                }
                try await fixture.publish(
                    ProducerRecord(topic: fixture.topics.webhookRetries[0], value: Array("{}".utf8), headers: webhook))
                #expect(try await fixture.deadLetters(4).last?.code == "invalid_job")
                // Another worker might know the target, because settings are not changed everywhere at once.
                try await fixture.publish(fixture.record("a", for: "nobody"))
                let letter = try #require(try await fixture.deadLetters(5).last)
                #expect(letter.code == "invalid_job" && letter.message.contains("no webhook has the name nobody"))
                #expect(letter.history?.count == 2 && letter.reason == .attempts)
            }
        }
    }

    @Test func deadLetterWithALongKeyHoldsBackNoOthers() async throws {
        try await NotificationFixture.with(partitions: 1) { fixture in
            try await fixture.withNotifier {
                $0.kafka = KafkaProperties(
                    brokers: fixture.brokers,
                    properties: ["session.timeout.ms": "12000", "message.max.bytes": "4000"]
                        + MockCluster.fetchProperties)
                $0.pubSub = nil
                $0.webhooks.targets = WebhookTargets(
                    urls: ["shop": try! WebURL("http://127.0.0.1:1/")], secrets: [Secrets.one])
            } _: {
                for key in [String(repeating: "k", count: 5000), "short"] {
                    try await fixture.publish(
                        ProducerRecord(
                            topic: fixture.topics.events, key: Array(key.utf8), value: Array("no event".utf8),
                            headers: [RecordHeader("halcyon-webhook", "shop")]))
                }
                let letter = try #require(try await fixture.deadLetters(1).first)
                #expect(letter.record.key == Array("short".utf8))
                try await until("both records have ended") {
                    fixture.metrics.value(of: "halcyon_webhooks_lag_offsets") == 0
                }
            }
        }
    }

    @Test func drainLeavesWaitingRetriesToTheNextNotifier() async throws {
        let origin = RawOrigin.flaky(1, "500 Internal Server Error")
        try await NotificationFixture.with(webhookDelays: [.seconds(2)], session: .seconds(6)) { fixture in
            try await fixture.withNotifier {
                $0.setTargets(["shop": origin])
                $0.webhooks.retries.inProcess = 0
            } _: {
                try await fixture.publish(fixture.record("a", for: "shop"))
                try await until("the event waits for its retry") { fixture.count("webhooks", "retried") >= 1 }
            }
            try await fixture.withNotifier({ $0.setTargets(["shop": origin]) }) {
                try await until("the event is delivered") { fixture.count("webhooks", "delivered") >= 1 }
            }
            #expect(origin.requests.count >= 2)
        }
        try await origin.stop()
    }
}
