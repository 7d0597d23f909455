import Concurrency
import Glibc
import HTTPServer
import Subprocess
import TestSupport
import Testing

/// The end of a server.
@Suite(.limitedParallelism) struct StopTests {
    /// Given to handlers: gone when they are.
    private final class Held: Sendable {}

    /// On a port that nobody else is given once it is closed.
    private static func start(
        _ handler: @escaping HTTPServer.Handler
    ) throws -> HTTPServer {
        try HTTPServer.start(on: "127.0.0.1", port: LoopbackPort.free(), .patient, handler: handler)
    }

    @Test func letsRequestsEnd() async throws {
        let (gate, noted) = (AsyncEvent(), Noted<String>())
        let server = try Self.start { _ in
            noted.note("begun")
            await gate.wait()
            return text("done")
        }
        let (idle, client) = (try RawClient(server.port), try RawClient(server.port))
        try await client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        try await until("it has begun and both are connected") { noted.count == 1 && server.connections == 2 }
        let stop = Task {
            await server.shutdown(gracePeriod: .seconds(120))
            noted.note("stopped")
        }
        // Idle connections go at once, and nobody new gets in.
        let rest = try await idle.rest()
        #expect(rest.isEmpty)
        #expect(throws: RawClient.Closed.self) { try RawClient(server.port) }
        #expect(noted.all == ["begun"])
        gate.signal()
        let answer = try await client.answer()
        #expect(answer.text == "done" && answer.headers["connection"]?.lowercased() == "close")
        let behind = try await client.rest()
        #expect(behind.isEmpty)
        await stop.value
        await server.shutdown(gracePeriod: .zero)
        #expect(server.connections == 0)
    }

    @Test func listensNoLongerThoughAnotherProcessHasTheSocketStill() async throws {
        let server = try Self.start { _ in text("done") }
        // As a child has it that was forked and has not come to its exec.
        let socket = try #require((3..<65_536).first { Self.listens($0, on: server.port) })
        let another = dup(socket)
        defer { close(another) }
        await server.shutdown(gracePeriod: .zero)
        #expect(throws: RawClient.Closed.self) { try RawClient(server.port) }
    }

    private static func listens(_ descriptor: Int32, on port: UInt16) -> Bool {
        var (isListening, size): (Int32, socklen_t) = (0, 4)
        guard getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &isListening, &size) == 0, isListening == 1 else {
            return false
        }
        var address = sockaddr_in()
        size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let code = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &size) }
        }
        return code == 0 && UInt16(bigEndian: address.sin_port) == port
    }

    @Test func dropsWhatIsLeftAndFreesEverything() async throws {
        weak var seen: Held?
        let noted = Noted<String>()
        do {
            let held = Held()
            seen = held
            let server = try Self.start { [held] request in
                noted.note("begun")
                switch request.path {
                case ["stream"]:
                    return HTTPServer.Response(
                        status: 200,
                        body: .stream(length: nil) { writer in
                            _ = held
                            try await writer.write([1])
                            try await untilCancelled(noted)
                        })
                case ["body"]:
                    do {
                        _ = try await request.body.collect(withTimeout: 1000)
                    } catch {
                        noted.note("cancelled")
                        throw error
                    }
                default: try await untilCancelled(noted)
                }
                return text("late")
            }
            let clients = try (0..<4).map { _ in try RawClient(server.port) }
            try await clients[0].send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            try await clients[1].send("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n")
            try await clients[2].send("POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nx")
            try await clients[3].send("GET / HT")
            try await until("three have begun") { noted.count == 3 && server.connections == 4 }
            await server.shutdown(gracePeriod: .milliseconds(50))
            #expect(server.connections == 0)
            for client in clients { _ = try await client.rest() }
        }
        try await until("all are cancelled") { noted.all.count { $0 == "cancelled" } == 3 }
        let last = WeakBox(seen)
        try await until("nothing is left") { last.isGone }
    }

    @Test func endsOnceForTwoCallers() async throws {
        let server = try Self.start { _ in text("") }
        async let first: Void = server.shutdown(gracePeriod: .seconds(1))
        async let second: Void = server.shutdown(gracePeriod: .zero)
        _ = await (first, second)
        #expect(server.connections == 0)
    }

    /// Stopping in the middle of requests of all kinds, over and over: what libmicrohttpd cannot have shows here.
    @Test func stopsUnderLoad() async throws {
        for _ in 0..<300 {
            let server = try Self.start { request in
                switch request.path {
                case ["wait"]:
                    try await Task.sleep(for: .milliseconds(3))
                    return text("waited")
                case ["stream"]:
                    return HTTPServer.Response(
                        status: 200,
                        body: .stream(length: nil) { writer in
                            for _ in 0..<50 {
                                try await writer.write([1, 2, 3])
                                await Task.yield()
                            }
                        })
                default:
                    while let _ = try await request.body.next() {}
                    return text("read")
                }
            }
            // Connected before anything else: a task may have its turn only after the stop.
            let clients = try (0..<12).map { _ in try RawClient(server.port) }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for (number, client) in clients.enumerated() {
                    group.addTask {
                        while true {
                            switch number % 3 {
                            case 0: try await client.send("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n")
                            case 1: try await client.send("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n")
                            default:
                                try await client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5000\r\n\r\n")
                                try await client.send([UInt8](repeating: 0, count: 5000))
                            }
                            // The server's end is the client's.
                            guard (try? await client.answer()) != nil else { return }
                        }
                    }
                }
                try await Task.sleep(for: .milliseconds(5))
                await server.shutdown(gracePeriod: .zero)
                try await group.waitForAll()
            }
        }
    }
}

/// Whether an object is still there.
private final class WeakBox: @unchecked Sendable {
    // Sendable: written once, before it is shared; weak references are read atomically.
    private weak var object: AnyObject?
    init(_ object: AnyObject?) { self.object = object }
    var isGone: Bool { object == nil }
}
