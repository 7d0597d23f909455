import HalcyonCoding
import TestSupport
import Testing

@testable import HalcyonGateway

/// Waiting for the terminal event of a job.
@Suite struct JobCompletionWaiterTests {
    @Test func returnsTheFirstTerminalEvent() async throws {
        try await EventFixture.with { fixture in
            try await fixture.withFeed { feed in
                let (one, same, other) = (feed.wait(for: "a"), feed.wait(for: "a"), feed.wait(for: "b"))
                try await fixture.publish("a", "started")
                try await fixture.publish("a", "progress")
                try await fixture.publish("a", "failed")
                try await fixture.publish("a", "ready")
                let end = try await one.end()
                guard case .failed("not_found", "gone") = end.event.ending else {
                    Issue.record("unexpected terminal event: \(String(describing: end.event.ending))")
                    return
                }
                #expect(String(decoding: end.json, as: UTF8.self) == EventFixture.event("a", "failed"))
                #expect(try await same.end().event.type == "failed")
                // A second call returns the same event.
                #expect(try await same.end().event.type == "failed")
                #expect(feed.waiters.count == 1)
                other.leave()
                other.leave()
                #expect(feed.waiters.count == 0)
            }
        }
    }

    /// Ids with two encodings of é are different.
    @Test func distinguishesCanonicallyEquivalentIDs() async throws {
        let waiters = JobCompletionRegistry()
        let (one, two) = (waiters.add("caf\u{e9}"), waiters.add("cafe\u{301}"))
        for id in ["cafe\u{301}", "caf\u{e9}"] {
            let kind = id.utf8.count == 5 ? "failed" : "ready"
            waiters.receive(key: Array(id.utf8), json: Array(EventFixture.event(id, kind).utf8))
        }
        #expect(try await one.end().event.type == "failed")
        #expect(try await two.end().event.type == "ready")
    }

    @Test(arguments: ["ready", "failed", "cancelled", "superseded"])
    func returnsEveryKindOfTerminalEvent(_ kind: String) async throws {
        try await EventFixture.with { fixture in
            try await fixture.withFeed { feed in
                let waiter = feed.wait(for: "a")
                try await fixture.publish("a", kind)
                #expect(try await waiter.end().event.type == kind)
            }
        }
    }

    @Test func ignoresTerminalEventsBeforeTheFeedStarted() async throws {
        try await EventFixture.with { fixture in
            try await fixture.publish("a", "failed", partition: 0)
            let feed = fixture.start()
            // Registered before the feed has caught up.
            let waiter = feed.wait(for: "a")
            await feed.ready()
            #expect(feed.isFollowing)
            try await fixture.publish("a", "cancelled", partition: 0)
            #expect(try await waiter.end().event.type == "cancelled")
            await feed.close()
        }
    }

    @Test func endsOnCancellationRemovalOrFeedClose() async throws {
        try await EventFixture.with { fixture in
            try await fixture.withFeed { feed in
                let waiters = (0..<3).map { _ in feed.wait(for: "a") }
                let tasks = waiters.map { waiter in Task { try await waiter.end().event.type } }
                tasks[0].cancel()
                waiters[1].leave()
                await feed.close()
                for task in tasks {
                    await #expect(throws: CancellationError.self) { try await task.value }
                }
                await #expect(throws: CancellationError.self) { try await feed.wait(for: "b").end() }
            }
        }
    }

    @Test func waitsWhileBrokersAreDown() async throws {
        try await EventFixture.with { fixture in
            await fixture.mock?.setDown(true)
            let feed = fixture.start()
            let waiter = feed.wait(for: "a")
            try await Task.sleep(for: .milliseconds(200))
            #expect(!feed.isFollowing)
            await fixture.mock?.setDown(false)
            await feed.ready()
            try await fixture.publish("a")
            #expect(try await waiter.end().event.type == "ready")
            await feed.close()
        }
    }
}
