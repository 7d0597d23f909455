import Testing

@testable import HalcyonKit

/// Parsing of event streams (HTML Living Standard, 9.2.6).
@Suite struct ServerSentEventsTests {
    private func messages(_ text: String, in parts: Int = .max, limit: Int = 1000) throws -> [ServerSentEvents.Message]
    {
        var parser = ServerSentEvents(limit: limit)
        var rest = Array(text.utf8)[...]
        var found: [ServerSentEvents.Message] = []
        while !rest.isEmpty {
            found += try parser.consume(rest.prefix(parts))
            rest = rest.dropFirst(parts)
        }
        return found
    }

    @Test(arguments: [1, 2, 3, 5, 7, .max]) func parsesChunksOfAnySize(parts: Int) throws {
        let text =
            ": hello\n\nid: 1\ndata: a\ndata:b\n\nevent: gap\r\ndata:  é\r\nid: 2\r\n\r\ndata\rid\r\rdata: never ended\n"
        #expect(
            try messages(text, in: parts) == [
                .init(data: "a\nb", id: "1"), .init(name: "gap", data: " é", id: "2"), .init(data: "", id: ""),
            ])
    }

    @Test func onlyCompleteEventsChangeTheLastEventID() throws {
        var parser = ServerSentEvents(lastEventID: "0", limit: 1000)
        #expect(try parser.consume("id: 1\ndata: a\n".utf8).isEmpty && parser.lastEventID == "0")
        #expect(try parser.consume("\nid: 2\n".utf8) == [.init(data: "a", id: "1")])
        #expect(parser.lastEventID == "1")
        #expect(try parser.consume("\n".utf8).isEmpty && parser.lastEventID == "2", "an id without an event counts")
        #expect(try parser.consume("id: a\0b\ndata: x\n\n".utf8) == [.init(data: "x", id: "2")])
    }

    @Test func ignoresInvalidRetryValues() throws {
        var parser = ServerSentEvents(limit: 1000)
        _ = try parser.consume("retry: 1500\nretry: soon\nretry: -1\nretry: 99999999999999999999\n".utf8)
        #expect(parser.retry == 1500)
    }

    @Test func limitsTheSizeOfAnEvent() throws {
        #expect(try messages("data: \(String(repeating: "x", count: 90))\n\n", limit: 100).count == 1)
        #expect(throws: ServerSentEvents.TooLarge.self) {
            try messages("data: \(String(repeating: "x", count: 100))", limit: 100)
        }
        #expect(throws: ServerSentEvents.TooLarge.self) {
            try messages(String(repeating: "data: 1234567890\n", count: 20), limit: 100)
        }
    }
}
