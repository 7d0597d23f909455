import HTTPServer
import Kafka
import TestSupport
import Testing

@testable import HalcyonGateway

/// `Last-Event-ID`: who comes back misses nothing and is told nothing twice.
@Suite struct EventResumeTests {
    private static let replays = "halcyon_gateway_event_replays_total"

    @Test(arguments: [true, false])
    func goesOnFromMemory(_ isHeader: Bool) async throws {
        try await EventFixture.with(partitions: 3) { fixture in
            try await fixture.withStream { _, server in
                let client = try await EventClient(server.port)
                try await client.begun()
                let start = client.lastEventID
                for number in 0..<30 { try await fixture.tell("\(number)") }
                let all = try await client.jobs(30)
                // Each event's own id leads behind it.
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

    /// A browser comes back with the URL that it came with.
    @Test func theHeaderCountsBeforeTheQuery() async throws {
        try await EventFixture.with(partitions: 1) { fixture in
            try await fixture.withStream { _, server in
                let client = try await EventClient(server.port)
                try await client.begun()
                let start = client.lastEventID
                for number in 0..<3 { try await fixture.tell("\(number)") }
                let ids = try await Self.ids(server.port, from: start, 3)
                let resumed = try await EventClient(server.port, "?lastEventId=\(start)", from: ids[1])
                #expect(try await resumed.jobs(1) == ["2"])
            }
        }
    }

    /// Tells so many events, which are read on the way: a client that falls behind what the gateway remembers is dropped.
    private static func tell(_ count: Int, _ fixture: EventFixture, readBy client: EventClient) async throws -> [String]
    {
        var read: [String] = []
        for number in 0..<count {
            try await fixture.tell("\(number)")
            if number % 20 == 19 { read += try await client.jobs(20) }
        }
        return read
    }

    @Test(arguments: [1, 3])
    func goesOnFromKafkaWhereMemoryEnds(_ partitions: Int) async throws {
        try await EventFixture.with(partitions: partitions) { fixture in
            try await fixture.withStream {
                $0.ringBytes = 60_000
            } _: { _, server in
                let client = try await EventClient(server.port)
                try await client.begun()
                let start = client.lastEventID
                let all = try await Self.tell(400, fixture, readBy: client)
                let resumed = try await EventClient(server.port, from: start)
                // Fewer than half of what the memory holds, for who is read to is dropped when it falls behind that.
                let telling = Task { for number in 400..<480 { try await fixture.tell("\(number)") } }
                let again = try await resumed.jobs(480)
                try await telling.value
                #expect(again.count == Set(again).count)
                #expect(Set(again) == Self.numbers(480))
                #expect(Set(again).isSuperset(of: all))
                #expect(fixture.metrics.value(of: Self.replays) == 1)
                // With a filter, too.
                let filtered = try await EventClient(server.port, "?job=17&job=479", from: start)
                #expect(try await filtered.jobs(2) == ["17", "479"])
            }
        }
    }

    @Test func moreReplaysThanPlacesWaitForTheirTurn() async throws {
        try await EventFixture.with { fixture in
            try await fixture.withStream {
                $0.ringBytes = 60_000
                $0.replays = 2
                $0.keepAlive = .milliseconds(50)
            } _: { _, server in
                let client = try await EventClient(server.port)
                try await client.begun()
                let all = Set(try await Self.tell(300, fixture, readBy: client)).sorted()
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

    @Test func anotherGatewayGoesOnWhileEventsKeepComing() async throws {
        try await EventFixture.with(partitions: 3) { fixture in
            try await fixture.withStream { _, one in
                let telling = Task {
                    for number in 0..<2_000 { try await fixture.tell("\(number)") }
                }
                try await fixture.withStream {
                    // One that has forgotten most.
                    $0.ringBytes = 200_000
                    $0.memory = .zero
                } _: { _, other in
                    let client = try await EventClient(one.port, from: TopicCursor([0, 0, 0]).text)
                    var (found, cursor, turn) = (try await client.jobs(100), client.lastEventID, 0)
                    // Nobody reads the one stream to its end: what is under way when it breaks comes again by the other.
                    while found.count < 2_000 {
                        turn += 1
                        let next = try await EventClient(turn % 2 == 0 ? one.port : other.port, from: cursor)
                        found += try await next.jobs(min(Int.random(in: 1...150), 2_000 - found.count))
                        cursor = next.lastEventID
                    }
                    #expect(Set(found) == Self.numbers(2_000))
                }
                try await telling.value
            }
        }
    }

    @Test func aGatewayThatStartsRemembersWhatWasBefore() async throws {
        try await EventFixture.with { fixture in
            for number in 0..<50 { try await fixture.tell("\(number)") }
            try await fixture.withStream { _, server in
                let client = try await EventClient(server.port, from: TopicCursor([0, 0, 0]).text)
                #expect(Set(try await client.jobs(50)) == Self.numbers(50))
                #expect(fixture.metrics.value(of: Self.replays) == 0)
                // To who begins it is past.
                let other = try await EventClient(server.port)
                try await other.begun()
                try await fixture.tell("new")
                #expect(try await other.jobs(1) == ["new"])
            }
        }
    }

    @Test func aGatewayThatIsAheadOrBehindMakesNoDifference() async throws {
        try await EventFixture.with(partitions: 2) { fixture in
            try await fixture.withStream { feed, server in
                try await fixture.tell("a", partition: 0)
                try await until("the feed has it") { feed.hub.cursor?.next == [1, 0] }
                // Another gateway has seen an event that is not here yet, and not the one that is.
                try await fixture.tell("b", partition: 1)
                let client = try await EventClient(server.port, from: TopicCursor([0, 1]).text)
                try await fixture.tell("c", partition: 1)
                #expect(Set(try await client.jobs(2)) == ["a", "c"])
            }
        }
    }

    /// The embedded broker keeps 5 MB of a partition.
    @Test func whatTheBrokerHasDeletedIsSaidToBeMissing() async throws {
        try await EventFixture.with(partitions: 2) { fixture in
            let padding = String(repeating: "x", count: 100_000)
            for _ in 0..<120 { try await fixture.tell("old", source: padding, partition: 0) }
            try await fixture.withStream {
                $0.ringBytes = 200_000
            } _: { _, server in
                let client = try await EventClient(server.port, from: TopicCursor([3, 0]).text)
                let first = try #require(try await client.next())
                #expect(first.name == "gap")
                let start = try #require(TopicCursor(first.id))
                #expect(start[0] > 3 && start[0] < 120)
                #expect(try await client.jobs(Int(120 - start[0])).count == Int(120 - start[0]))
                try await fixture.tell("new", partition: 1)
                #expect(try await client.jobs(1) == ["new"])
                #expect(fixture.metrics.value(of: "halcyon_gateway_event_gaps_total") == 1)
            }
        }
    }

    /// As after `halcyon dev` was begun anew, when a page is still open.
    @Test func aCursorOfATopicThatIsNoMoreBeginsWithTheOldest() async throws {
        try await EventFixture.with(partitions: 2) { fixture in
            try await fixture.tell("a", partition: 0)
            try await fixture.withStream { _, server in
                let client = try await EventClient(server.port, from: TopicCursor([700, 12, 5]).text)
                #expect(try await client.next()?.name == "gap")
                #expect(try await client.jobs(1) == ["a"])
                try await fixture.tell("b", partition: 1)
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
