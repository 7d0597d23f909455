import ChaosHarness
import Concurrency
import Subprocess
import TestSupport
import Testing

@Suite struct RelayTests {
    private static let request = "GET /a HTTP/1.1\r\nHost: a\r\n\r\n"

    private func withRelay(
        _ script: @escaping @Sendable (RawOrigin.Request) -> [RawOrigin.Step],
        _ body: (Relay, RawOrigin) async throws -> Void
    ) async throws {
        let origin = RawOrigin(script)
        let loop = EventLoop(name: "relay")
        let relay = try await Relay.start(to: origin.port, on: loop)
        let result: Result<Void, any Error>
        do {
            result = .success(try await body(relay, origin))
        } catch {
            result = .failure(error)
        }
        await relay.close()
        await blocking { loop.stop() }
        try await origin.stop()
        try result.get()
    }

    private func ask(_ relay: Relay) async throws -> [UInt8] {
        try await blocking { Result { try Exchange.bytes(Self.request, port: relay.port) } }.get()
    }

    @Test func carriesWhatIsSentBothWaysHoweverMuch() async throws {
        let body = (0..<5_000_000).map { UInt8(truncatingIfNeeded: $0 / 251) }
        try await withRelay({ _ in [.bytes(body), .close] }) { relay, origin in
            for _ in 0..<3 {
                let answer = try await ask(relay)
                #expect(answer == body)
            }
            #expect(origin.requests.map(\.path) == ["/a", "/a", "/a"])
        }
    }

    @Test func isSilentAndDeliversLate() async throws {
        try await withRelay({ _ in [.text("late"), .close] }) { relay, origin in
            await relay.set(.silent)
            async let answer = ask(relay)
            // Whoever is let through would have asked by then.
            try await Task.sleep(for: .milliseconds(200))
            #expect(origin.requests.isEmpty)
            await relay.set(.open)
            #expect(try await answer == Array("late".utf8))
        }
    }

    @Test func resetsWhatStandsAndWhatComes() async throws {
        try await withRelay({ _ in [.text("begun"), .awaitEnd] }) { relay, origin in
            async let answer = ask(relay)
            try await until("the request is there") { origin.requests.count == 1 }
            await relay.set(.refusing)
            #expect(try await answer.count <= 5)
            try await until("the origin hears of it") { origin.cuts == 1 }
            #expect(try await ask(relay).isEmpty)
            #expect(origin.requests.count == 1)
        }
    }

    @Test func seesWhatBrokersAreAskedForHoweverItIsCut() {
        // A request of key 3 and five bytes, one of key 26 and none, one of key 0.
        let bytes: [UInt8] = [0, 0, 0, 7, 0, 3, 0, 26, 0, 26, 9, 0, 0, 0, 2, 0, 26, 0, 0, 0, 3, 0, 0, 1]
        for size in 1...bytes.count {
            var (keys, seen) = (RequestKeys(), [Int16]())
            for start in stride(from: 0, to: bytes.count, by: size) {
                seen += keys.see(bytes[start..<min(start + size, bytes.count)])
            }
            #expect(seen == [3, 26, 0], "\(size)")
        }
    }

    @Test func holdsTheRequestThatIsWaitedFor() async throws {
        // To the relay the line of the request is a head: four bytes of length, then the key "/a".
        let key = Int16(UInt8(ascii: "/")) << 8 | Int16(UInt8(ascii: "a"))
        try await withRelay({ _ in [.text("late"), .close] }) { relay, origin in
            let isMissed = await relay.becomeSilent(before: key + 1, within: .milliseconds(50))
            #expect(!isMissed)
            async let hasCome = relay.becomeSilent(before: key, within: .seconds(120))
            // What is asked before anybody waits is answered.
            let asking = Task { while !Task.isCancelled { _ = try await ask(relay) } }
            #expect(await hasCome)
            let before = origin.requests.count
            asking.cancel()
            await relay.set(.open)
            try await asking.value
            #expect(origin.requests.count == before + 1)
        }
    }

    @Test func refusesWhereNobodyListens() async throws {
        let loop = EventLoop(name: "relay")
        let relay = try await Relay.start(to: LoopbackPort.free(), on: loop)
        #expect(try await ask(relay).isEmpty)
        await relay.close()
        await blocking { loop.stop() }
    }
}
