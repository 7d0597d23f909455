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

    private func sendRequest(through relay: Relay) async throws -> [UInt8] {
        try await blocking { Result { try Exchange.bytes(Self.request, port: relay.port) } }.get()
    }

    @Test func relaysLargeDataInBothDirections() async throws {
        let body = (0..<5_000_000).map { UInt8(truncatingIfNeeded: $0 / 251) }
        try await withRelay({ _ in [.bytes(body), .close] }) { relay, origin in
            for _ in 0..<3 {
                let answer = try await sendRequest(through: relay)
                #expect(answer == body)
            }
            #expect(origin.requests.map(\.path) == ["/a", "/a", "/a"])
        }
    }

    @Test func deliversAfterSilence() async throws {
        try await withRelay({ _ in [.text("late"), .close] }) { relay, origin in
            await relay.set(.silent)
            async let answer = sendRequest(through: relay)
            // A relayed request would have arrived by then.
            try await Task.sleep(for: .milliseconds(200))
            #expect(origin.requests.isEmpty)
            await relay.set(.open)
            #expect(try await answer == Array("late".utf8))
        }
    }

    @Test func resetsCurrentAndNewConnections() async throws {
        try await withRelay({ _ in [.text("begun"), .awaitEnd] }) { relay, origin in
            async let answer = sendRequest(through: relay)
            try await until("the request has arrived") { origin.requests.count == 1 }
            await relay.set(.refusing)
            #expect(try await answer.count <= 5)
            try await until("the origin's connection is closed") { origin.cuts == 1 }
            #expect(try await sendRequest(through: relay).isEmpty)
            #expect(origin.requests.count == 1)
        }
    }

    @Test func parsesRequestKeysAtAnyChunkSize() {
        // Three requests: key 3 with five more bytes, key 26 without any, and key 0.
        let bytes: [UInt8] = [0, 0, 0, 7, 0, 3, 0, 26, 0, 26, 9, 0, 0, 0, 2, 0, 26, 0, 0, 0, 3, 0, 0, 1]
        for size in 1...bytes.count {
            var (keys, seen) = (RequestKeys(), [Int16]())
            for start in stride(from: 0, to: bytes.count, by: size) {
                seen += keys.see(bytes[start..<min(start + size, bytes.count)])
            }
            #expect(seen == [3, 26, 0], "\(size)")
        }
    }

    @Test func becomesSilentBeforeTheAwaitedRequest() async throws {
        // The relay parses the request line as a Kafka header: four bytes of length, then the key "/a".
        let key = Int16(UInt8(ascii: "/")) << 8 | Int16(UInt8(ascii: "a"))
        try await withRelay({ _ in [.text("late"), .close] }) { relay, origin in
            let isOtherKeySent = await relay.becomeSilent(before: key + 1, within: .milliseconds(50))
            #expect(!isOtherKeySent)
            async let isKeySent = relay.becomeSilent(before: key, within: .patience)
            // Requests sent before the relay waits for the key are answered.
            let requestLoop = Task { while !Task.isCancelled { _ = try await sendRequest(through: relay) } }
            #expect(await isKeySent)
            let before = origin.requests.count
            requestLoop.cancel()
            await relay.set(.open)
            try await requestLoop.value
            #expect(origin.requests.count == before + 1)
        }
    }

    @Test func closesConnectionsWithoutAListeningTarget() async throws {
        let loop = EventLoop(name: "relay")
        let relay = try await Relay.start(to: LoopbackPort.reserve(), on: loop)
        #expect(try await sendRequest(through: relay).isEmpty)
        await relay.close()
        await blocking { loop.stop() }
    }
}
