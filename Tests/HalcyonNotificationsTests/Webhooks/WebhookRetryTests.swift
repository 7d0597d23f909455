import Concurrency
import HalcyonCluster
import HalcyonModel
import HalcyonSources
import Kafka
import TestSupport
import Testing

@testable import HalcyonNotifications

/// Webhooks that do not take what they are sent.
@Suite(.limitedParallelism) struct WebhookRetryTests {
    @Test func whatFailsIsSentAgainUnderTheSameId() async throws {
        let origin = RawOrigin.flaky(2, "500 Internal Server Error")
        try await NotificationFixture.with { fixture in
            try await fixture.withNotifier({ $0.name(["shop": origin]) }) {
                try await fixture.tell(fixture.record("a", for: "shop"))
                try await until("it is taken") { fixture.count("webhooks", "delivered") == 1 }
            }
            #expect(origin.requests.map(\.event) == Array(repeating: "halcyon.jobs-0-a-ready", count: 3))
            #expect(fixture.count("webhooks", "retried") == 2 && fixture.count("webhooks", "dead") == 0)
        }
        try await origin.stop()
    }

    @Test func whatTakesLongerGoesThroughTopicsAndNoSoonerThanItsTargetSays() async throws {
        let origin = RawOrigin.flaky(3, "503 Service Unavailable", ["Retry-After: 1"])
        try await NotificationFixture.with(webhookDelays: [.milliseconds(200), .seconds(2)]) { fixture in
            try await fixture.withNotifier {
                $0.name(["shop": origin])
                $0.webhooks.retries.inProcess = 0
            } _: {
                try await fixture.tell(fixture.record("a", for: "shop"))
                try await until("it is taken") { fixture.count("webhooks", "delivered") == 1 }
            }
            #expect(Set(origin.requests.map(\.event)) == ["halcyon.jobs-0-a-ready"] && origin.requests.count == 4)
            #expect(Set(origin.requests.map(\.body)) == [Array(NotificationFixture.event("a").utf8)])
            let times = origin.requests.compactMap { $0.header("webhook-timestamp").flatMap { Int($0) } }
            for (time, next) in zip(times, times.dropFirst()) { #expect(next >= time + 1) }
            #expect(fixture.count("webhooks", "retried") == 3)
        }
        try await origin.stop()
    }

    @Test func aTargetThatHangsHoldsUpNoOther() async throws {
        let (dead, good) = (RawOrigin { _ in [.awaitEnd] }, RawOrigin { _ in RawOrigin.answer() })
        try await NotificationFixture.with(partitions: 1) { fixture in
            try await fixture.withNotifier {
                $0.name(["dead": dead, "good": good])
                $0.consumer.window = 32
                // Should the good one be late on a machine that stalls, it is tried again.
                $0.webhooks.timeout = .seconds(5)
                $0.webhooks.limits.concurrency = 2
                $0.webhooks.limits.queue = 4
                $0.webhooks.limits.failures = 2
            } _: {
                for number in 0..<400 {
                    let isGood = number % 8 == 7
                    try await fixture.tell(fixture.record("\(number)", for: isGood ? "good" : "dead"))
                    // One after the other: on a machine that stalls, more of them than may wait would be put off as well.
                    guard isGood else { continue }
                    try await until("the good one has it") {
                        fixture.count("webhooks", "delivered") == (number + 1) / 8
                    }
                }
                #expect(Set(good.requests.map(\.event)).count == 50)
                // They lie in their topic, and took no attempt.
                #expect(fixture.count("webhooks", "postponed") > 300 && dead.requests.count < 50)
                #expect(fixture.count("webhooks", "dead") == 0)
            }
        }
        try await dead.stop()
        try await good.stop()
    }

    @Test func whoIsBackGetsWhatWasPutOff() async throws {
        let isUp = Lock(false)
        let origin = RawOrigin { _ in
            isUp.withLock { $0 } ? RawOrigin.answer() : RawOrigin.answer("502 Bad Gateway")
        }
        try await NotificationFixture.with(webhookDelays: [.milliseconds(300)]) { fixture in
            try await fixture.withNotifier {
                $0.name(["shop": origin])
                $0.webhooks.retries.attempts = 1000
                $0.webhooks.limits.failures = 2
            } _: {
                for number in 0..<50 { try await fixture.tell(fixture.record("\(number)", for: "shop")) }
                try await until("some wait") { fixture.count("webhooks", "postponed") > 30 }
                isUp.withLock { $0 = true }
                try await until("all are sent") { fixture.count("webhooks", "delivered") == 50 }
                #expect(fixture.count("webhooks", "dead") == 0)
            }
        }
        try await origin.stop()
    }

    @Test func whatNobodyTakesIsPutAsideAndCanBeReplayed() async throws {
        let isUp = Lock(false)
        let origin = RawOrigin { request in
            if isUp.withLock({ $0 }) { return RawOrigin.answer() }
            return RawOrigin.answer(request.event == "halcyon.jobs-0-gone-ready" ? "410 Gone" : "404 Not Found")
        }
        try await NotificationFixture.with(webhookDelays: [.milliseconds(100)], partitions: 1) { fixture in
            try await fixture.withNotifier {
                $0.name(["shop": origin])
                $0.webhooks.retries.attempts = 3
            } _: {
                try await fixture.tell(fixture.record("gone", for: "shop"))
                let gone = try #require(try await fixture.letters(1).first)
                #expect(gone.code == "gone" && gone.reason == .final && gone.history?.count == 1)
                #expect(gone.webhook(fixture.topics) == "shop" && gone.record.value == fixture.record("gone").value)
                #expect(gone.provenance?.topic == "halcyon.events" && origin.requests.count == 1)

                try await fixture.tell(fixture.record("failed", for: "shop"))
                let failed = try #require(try await fixture.letters(2).last)
                #expect(failed.code == "http_error" && failed.message == "the webhook answered 404")
                #expect(failed.reason == .attempts && failed.history?.count == 3 && origin.requests.count == 4)
                #expect(fixture.count("webhooks", "dead") == 2)

                isUp.withLock { $0 = true }
                let replay = try Replay.record(of: failed, fixture.topics)
                #expect(replay.topic == "halcyon.webhooks.100ms")
                try await fixture.tell(replay)
                try await until("it is sent") { fixture.count("webhooks", "delivered") == 1 }
                #expect(origin.requests.last?.event == "halcyon.jobs-0-failed-ready")
            }
        }
        try await origin.stop()
    }

    @Test func whatIsNoEventAndWhomNobodyKnowsIsPutAside() async throws {
        try await NotificationFixture.with(webhookDelays: [.milliseconds(100)], partitions: 1) { fixture in
            try await fixture.withNotifier {
                $0.pubSub = nil
                $0.webhooks.targets = WebhookTargets(
                    urls: ["shop": try! WebURL("http://127.0.0.1:1/")], secrets: [Secrets.one])
                $0.webhooks.retries.attempts = 2
            } _: {
                let webhook = [RecordHeader("halcyon-webhook", "shop")]
                for (count, value) in ["half a {", "{}", #"{"id":"a\r\nb","type":"c"}"#].enumerated() {
                    try await fixture.tell(
                        ProducerRecord(topic: fixture.topics.events, value: Array(value.utf8), headers: webhook))
                    #expect(try await fixture.letters(count + 1).last?.code == "invalid_job")
                }
                try await fixture.tell(
                    ProducerRecord(topic: fixture.topics.webhookRetries[0], value: Array("{}".utf8), headers: webhook))
                #expect(try await fixture.letters(4).last?.code == "invalid_job")
                // Another worker might know it: the settings of all are not changed at once.
                try await fixture.tell(fixture.record("a", for: "nobody"))
                let letter = try #require(try await fixture.letters(5).last)
                #expect(letter.code == "invalid_job" && letter.message.contains("no webhook has the name nobody"))
                #expect(letter.history?.count == 2 && letter.reason == .attempts)
            }
        }
    }

    @Test func whatWaitsIsHandedBackAtADrainAndSentByTheNextOne() async throws {
        let origin = RawOrigin.flaky(1, "500 Internal Server Error")
        try await NotificationFixture.with(webhookDelays: [.seconds(2)]) { fixture in
            try await fixture.withNotifier {
                $0.name(["shop": origin])
                $0.webhooks.retries.inProcess = 0
            } _: {
                try await fixture.tell(fixture.record("a", for: "shop"))
                try await until("it waits") { fixture.count("webhooks", "retried") == 1 }
            }
            try await fixture.withNotifier({ $0.name(["shop": origin]) }) {
                try await until("it is sent") { fixture.count("webhooks", "delivered") == 1 }
            }
            #expect(origin.requests.count == 2)
        }
        try await origin.stop()
    }
}
