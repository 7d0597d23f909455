import Glibc
import HalcyonModel
import HalcyonSources
import Kafka
import Subprocess
import TestSupport
import Testing

@testable import HalcyonNotifications

/// Delivery of committed events to webhooks.
@Suite(.limitedParallelism) struct WebhookTests {
    @Test func sendsCommittedEventsWithAVerifiableSignature() async throws {
        let origin = RawOrigin { _ in RawOrigin.answer("204 No Content") }
        try await NotificationFixture.with { fixture in
            try await fixture.withNotifier({ $0.setTargets(["shop": origin]) }) {
                try await fixture.publish(fixture.record("for nobody"))
                for kind in ["started", "progress"] {
                    try await fixture.publish(fixture.record(kind, kind, for: "shop"))
                }
                let event = fixture.record("a", for: "shop", data: #","n":[[[[[1]]]]],"text":"ü""#)
                var odd = event
                odd.value = Array(#"{"id":"odd","type":"other"}"#.utf8)
                try await fixture.publish(event)
                try await fixture.publish(odd)
                try await until("both events are delivered") { fixture.count("webhooks", "delivered") == 2 }
                #expect(origin.requests.count == 2)
                let request = try #require(origin.requests.first { $0.event == "halcyon.jobs-0-a-ready" })
                #expect(request.head.hasPrefix("POST /hook?a=b HTTP/1.1\r\n") && request.body == event.value)
                #expect(request.header("content-type") == "application/cloudevents+json")
                #expect(request.header("user-agent") == "Halcyon")
                let timestamp = try #require(request.header("webhook-timestamp").flatMap { Int($0) })
                #expect(abs(timestamp - time(nil)) < 600)
                let signatures = request.header("webhook-signature")?.split(separator: " ") ?? []
                #expect(signatures.count == 2)
                for (signature, secret) in zip(signatures, [Secrets.one, Secrets.other]) {
                    #expect(try await Self.signature(request, secret.text) == String(signature))
                }
            }
        }
        try await origin.stop()
    }

    /// They are sent whatever the kinds of job events are.
    @Test func sendsCompletionsOfBatches() async throws {
        let origin = RawOrigin { _ in RawOrigin.answer() }
        try await NotificationFixture.with(partitions: 1) { fixture in
            try await fixture.withNotifier {
                $0.setTargets(["shop": origin])
                $0.webhooks.kinds = [.started]
            } _: {
                var event = fixture.record("b", for: "shop")
                event.value = Array(
                    #"{"id":"batch-b-completed","type":"halcyon.batch.completed","data":{"batch":{"id":"b"}}}"#.utf8)
                try await fixture.publish(event)
                try await until("the event is delivered") { fixture.count("webhooks", "delivered") == 1 }
                #expect(origin.requests.map(\.event) == ["batch-b-completed"])
                #expect(origin.requests.first?.body == event.value)
            }
        }
        try await origin.stop()
    }

    @Test func sendsOnlyConfiguredKinds() async throws {
        let origin = RawOrigin { _ in RawOrigin.answer() }
        try await NotificationFixture.with(partitions: 1) { fixture in
            try await fixture.withNotifier {
                $0.setTargets(["shop": origin])
                $0.webhooks.kinds = [.started, .failed]
            } _: {
                for kind in ["started", "progress", "ready", "cancelled", "failed"] {
                    try await fixture.publish(fixture.record("a", kind, for: "shop"))
                }
                try await until("both events are delivered") { fixture.count("webhooks", "delivered") == 2 }
            }
            #expect(Set(origin.requests.map(\.event)) == ["halcyon.jobs-0-a-started", "halcyon.jobs-0-a-failed"])
        }
        try await origin.stop()
    }

    /// Computes a signature with Python's standard library.
    private static func signature(_ request: RawOrigin.Request, _ secret: String) async throws -> String {
        let program = """
            import base64, hashlib, hmac, sys
            secret, id, timestamp, body = sys.argv[1:]
            key = base64.b64decode(secret[len("whsec_"):])
            text = f"{id}.{timestamp}.".encode() + bytes.fromhex(body)
            print("v1," + base64.b64encode(hmac.new(key, text, hashlib.sha256).digest()).decode(), end="")
            """
        let body = request.body.map { "\($0 < 16 ? "0" : "")\(String($0, radix: 16))" }.joined()
        let run = try await ChildProcess.run(
            "python3",
            [
                "-c", program, secret, request.header("webhook-id") ?? "", request.header("webhook-timestamp") ?? "",
                body,
            ], timeLimit: .seconds(60), outputLimit: 1000)
        #expect(run.end == .exit(.code(0)), "\(run.errors)")
        return String(decoding: run.output, as: UTF8.self)
    }

    @Test func rejectsPrivateAddressesUnlessConfigured() async throws {
        let origin = RawOrigin { _ in RawOrigin.answer() }
        try await NotificationFixture.with(partitions: 1) { fixture in
            try await fixture.withNotifier {
                $0.policy = AddressPolicy()
                $0.pubSub = nil
                $0.webhooks.targets = WebhookTargets(
                    urls: ["own": try! WebURL(origin.url("/own"))], secrets: [Secrets.one], allow: ["127.0.0.1"])
            } _: {
                try await fixture.publish(fixture.record("private", for: origin.url("/private")))
                let letter = try #require(try await fixture.deadLetters(1).first)
                #expect(letter.code == "blocked_address" && letter.message.contains("127.0.0.1 is not allowed"))
                #expect(letter.reason == .final && origin.connections == 0)
                try await fixture.publish(fixture.record("own", for: "own"))
                try await until("the event is delivered") { fixture.count("webhooks", "delivered") == 1 }
                #expect(origin.requests.map(\.path) == ["/own"])
            }
            try await fixture.withNotifier {
                $0.policy = AddressPolicy(deny: ["127.0.0.1"])
                $0.setTargets(["own": origin])
            } _: {
                try await fixture.publish(fixture.record("denied", for: "own"))
                #expect(try await fixture.deadLetters(2).last?.code == "blocked_address")
            }
        }
        try await origin.stop()
    }

    @Test func ignoresRedirectsAndLongResponseBodies() async throws {
        let elsewhere = RawOrigin { _ in RawOrigin.answer() }
        let origin = RawOrigin { request in
            request.event == "halcyon.jobs-0-moved-ready"
                ? RawOrigin.answer("307 Temporary Redirect", ["Location: \(elsewhere.url("/"))"])
                : [.text("HTTP/1.1 200 OK\r\nContent-Length: 10000000\r\n\r\n"), .zeros(10_000_000)]
        }
        try await NotificationFixture.with(partitions: 1) { fixture in
            try await fixture.withNotifier {
                $0.setTargets(["shop": origin])
                $0.webhooks.retries.attempts = 1
                $0.webhooks.maximumResponseBytes = 1000
            } _: {
                try await fixture.publish(fixture.record("long", for: "shop"))
                try await until("the event is delivered") { fixture.count("webhooks", "delivered") == 1 }
                try await fixture.publish(fixture.record("moved", for: "shop"))
                #expect(try await fixture.deadLetters(1).first?.message == "the webhook answered 307")
                #expect(elsewhere.connections == 0 && origin.requests.count == 2)
            }
        }
        try await origin.stop()
        try await elsewhere.stop()
    }
}
