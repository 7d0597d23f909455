import HTTPServer
import Kafka
import TestSupport
import Testing

@testable import HalcyonGateway

/// `Last-Event-ID`: a client that reconnects misses no event and receives none twice.
@Suite struct EventResumeTests {
    private static let replays = "halcyon_gateway_event_replays_total"

    @Test(arguments: [true, false])
    func resumesFromMemory(_ isHeader: Bool) async throws {
        try await EventFixture.with(partitions: 3) { fixture in
            try await fixture.withStream { _, server in
                let client = try await EventClient(server.port)
                try await client.waitForStart()
                let start = client.lastEventID
                for number in 0..<30 { try await fixture.publish("\(number)") }
                let all = try await client.jobs(30)
                // A client that resumes with the id of an event starts after it.
                let ids = try await Self.ids(server.port, from: start, 30)
                for (index, id) in ids.enumerated() where index < 29 {
                    let resumed =
                        isHeader
                        ? try await EventClient(server.port, from: id)
                        : try await EventClient(server.port, "?lastEventId=\(id)")
                    #expect(try await resumed.jobs(29 - index) == Array(all[(index + 1)...]))
                }
                #expect(fixture.metrics.value(of: Self.replays) == 0)
            }
        }
    }

    /// A browser reconnects with its original URL.
    @Test func headerTakesPrecedenceOverTheQuery() async throws {
        try await EventFixture.with(partitions: 1) { fixture in
            try await fixture.withStream { _, server in
                let client = try await EventClient(server.port)
                try await client.waitForStart()
                let start = client.lastEventID
                for number in 0..<3 { try await fixture.publish("\(number)") }
                let ids = try await Self.ids(server.port, from: start, 3)
                let resumed = try await EventClient(server.port, "?lastEventId=\(start)", from: ids[1])
                #expect(try await resumed.jobs(1) == ["2"])
            }
        }
    }

    /// Publishes events and reads them meanwhile, because a client that falls behind the ring buffer is dropped.
    private static func publish(_ count: Int, _ fixture: EventFixture, readBy client: EventClient) async throws
        -> [String]
    {
        var read: [String] = []
        for number in 0..<count {
            try await fixture.publish("\(number)")
            if number % 20 == 19 { read += try await client.jobs(20) }
        }
        return read
    }

    @Test(arguments: [1, 3])
    func resumesFromKafkaBeyondMemory(_ partitions: Int) async throws {
        try await EventFixture.with(partitions: partitions) { fixture in
            try await fixture.withStream {
                $0.ringBytes = 90_000
            } _: { _, server in
                let client = try await EventClient(server.port)
                try await client.waitForStart()
                let start = client.lastEventID
                let all = try await Self.publish(400, fixture, readBy: client)
                let resumed = try await EventClient(server.port, from: start)
                // Less than half of the ring buffer, because a client that falls behind that during a replay is
                // dropped.
                let publishing = Task { for number in 400..<480 { try await fixture.publish("\(number)") } }
                let again = try await resumed.jobs(480)
                try await publishing.value
                #expect(again.count == Set(again).count)
                #expect(Set(again) == Self.numbers(480))
                #expect(Set(again).isSuperset(of: all))
                #expect(fixture.metrics.value(of: Self.replays) == 1)
                // Also with a filter.
                let filtered = try await EventClient(server.port, "?job=17&job=479", from: start)
                #expect(try await filtered.jobs(2) == ["17", "479"])
            }
        }
    }

    @Test func excessReplaysWaitForAPermit() async throws {
        try await EventFixture.with { fixture in
            try await fixture.withStream {
                $0.ringBytes = 60_000
                $0.replays = 2
                $0.keepAlive = .milliseconds(50)
            } _: { _, server in
                let client = try await EventClient(server.port)
                try await client.waitForStart()
                let all = Set(try await Self.publish(300, fixture, readBy: client)).sorted()
                let start = TopicCursor([0, 0, 0]).text
                try await withThrowingTaskGroup(of: [String].self) { group in
                    for _ in 0..<12 {
                        group.addTask { Set(try await EventClient(server.port, from: start).jobs(300)).sorted() }
                    }
                    for try await data in group { #expect(data == all) }
                }
            }
        }
    }

    @Test func resumesOnAnotherGatewayUnderLoad() async throws {
        try await EventFixture.with(partitions: 3) { fixture in
            try await fixture.withStream { _, one in
                let publishing = Task {
                    for number in 0..<2_000 { try await fixture.publish("\(number)") }
                }
                try await fixture.withStream {
                    // A gateway without most of the events in memory.
                    $0.ringBytes = 200_000
                    $0.memory = .zero
                } _: { _, other in
                    let client = try await EventClient(one.port, from: TopicCursor([0, 0, 0]).text)
                    var (found, cursor, turn) = (try await client.jobs(100), client.lastEventID, 0)
                    // Streams are abandoned before their end. Events in transit then are delivered again by the other
                    // gateway.
                    while found.count < 2_000 {
                        turn += 1
                        do {
                            let next = try await EventClient(turn % 2 == 0 ? one.port : other.port, from: cursor)
                            for _ in 0..<min(Int.random(in: 1...150), 2_000 - found.count) {
                                found += try await next.jobs(1)
                                cursor = next.lastEventID
                            }
                        } catch is RawClient.Closed where turn % 2 == 1 {
                            // The stream fell behind the small ring buffer.
                        }
                    }
                    #expect(Set(found) == Self.numbers(2_000))
                }
                try await publishing.value
            }
        }
    }

    @Test func replaysEventsPublishedBeforeTheGatewayStarted() async throws {
        try await EventFixture.with { fixture in
            for number in 0..<50 { try await fixture.publish("\(number)") }
            try await fixture.withStream { _, server in
                let client = try await EventClient(server.port, from: TopicCursor([0, 0, 0]).text)
                #expect(Set(try await client.jobs(50)) == Self.numbers(50))
                #expect(fixture.metrics.value(of: Self.replays) == 0)
                // A new client does not receive past events.
                let other = try await EventClient(server.port)
                try await other.waitForStart()
                try await fixture.publish("new")
                #expect(try await other.jobs(1) == ["new"])
            }
        }
    }

    @Test func acceptsCursorsOfGatewaysAheadOrBehind() async throws {
        try await EventFixture.with(partitions: 2) { fixture in
            try await fixture.withStream { feed, server in
                try await fixture.publish("a", partition: 0)
                try await until("the feed has received the event") { feed.hub.cursor?.next == [1, 0] }
                // The cursor of another gateway that has received an event which is not here yet, and not the one that
                // is.
                try await fixture.publish("b", partition: 1)
                let client = try await EventClient(server.port, from: TopicCursor([0, 1]).text)
                try await fixture.publish("c", partition: 1)
                #expect(Set(try await client.jobs(2)) == ["a", "c"])
            }
        }
    }

    /// The embedded broker stores up to 5 MB of a partition.
    @Test func reportsAGapForDeletedEvents() async throws {
        try await EventFixture.with(partitions: 2) { fixture in
            let padding = String(repeating: "x", count: 100_000)
            for _ in 0..<120 { try await fixture.publish("old", source: padding, partition: 0) }
            try await fixture.withStream {
                $0.ringBytes = 200_000
            } _: { _, server in
                let client = try await EventClient(server.port, from: TopicCursor([3, 0]).text)
                let first = try #require(try await client.next())
                #expect(first.name == "gap")
                let start = try #require(TopicCursor(first.id))
                #expect(start[0] > 3 && start[0] < 120)
                #expect(try await client.jobs(Int(120 - start[0])).count == Int(120 - start[0]))
                try await fixture.publish("new", partition: 1)
                #expect(try await client.jobs(1) == ["new"])
                #expect(fixture.metrics.value(of: "halcyon_gateway_event_gaps_total") == 1)
            }
        }
    }

    /// The case of a page that is still open when `halcyon dev` is restarted.
    @Test func cursorOfARecreatedTopicStartsAtTheOldest() async throws {
        try await EventFixture.with(partitions: 2) { fixture in
            try await fixture.publish("a", partition: 0)
            try await fixture.withStream { _, server in
                let client = try await EventClient(server.port, from: TopicCursor([700, 12, 5]).text)
                #expect(try await client.next()?.name == "gap")
                #expect(try await client.jobs(1) == ["a"])
                try await fixture.publish("b", partition: 1)
                #expect(try await client.jobs(1) == ["b"])
                #expect(TopicCursor(client.lastEventID) == TopicCursor([1, 1]))
            }
        }
    }

    private static func numbers(_ count: Int) -> Set<String> { Set((0..<count).map(String.init)) }

    private static func ids(_ port: UInt16, from start: String, _ count: Int) async throws -> [String] {
        let client = try await EventClient(port, from: start)
        var ids: [String] = []
        while ids.count < count, let message = try await client.next() { ids.append(message.id) }
        return ids
    }
}
