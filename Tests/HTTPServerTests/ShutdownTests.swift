import Concurrency
import Glibc
import HTTPServer
import Subprocess
import TestSupport
import Testing

/// Shutdown of a server.
@Suite(.limitedParallelism) struct ShutdownTests {
    /// An object that handlers capture. It is freed with them.
    private final class Captured: Sendable {}

    /// Starts a server on a port that is not assigned again after it is closed.
    private static func start(
        _ handler: @escaping HTTPServer.Handler
    ) throws -> HTTPServer {
        try HTTPServer.start(on: "127.0.0.1", port: LoopbackPort.reserve(), .patient, handler: handler)
    }

    @Test func finishesRequestsInFlight() async throws {
        let (gate, events) = (AsyncEvent(), Recorder<String>())
        let server = try Self.start { _ in
            events.record("begun")
            await gate.wait()
            return text("done")
        }
        let (idle, client) = (try RawClient(server.port), try RawClient(server.port))
        try await client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        try await until("the handler runs, both are connected") { events.count == 1 && server.connections == 2 }
        let stop = Task {
            await server.shutdown(gracePeriod: .patience)
            events.record("stopped")
        }
        // Idle connections are closed at once, and new ones are refused.
        let rest = try await idle.rest()
        #expect(rest.isEmpty)
        #expect(throws: RawClient.Closed.self) { try RawClient(server.port) }
        #expect(events.all == ["begun"])
        gate.signal()
        let answer = try await client.answer()
        #expect(answer.text == "done" && answer.headers["connection"]?.lowercased() == "close")
        let behind = try await client.rest()
        #expect(behind.isEmpty)
        await stop.value
        await server.shutdown(gracePeriod: .zero)
        #expect(server.connections == 0)
    }

    @Test func stopsListeningDespiteInheritedSocket() async throws {
        let server = try Self.start { _ in text("done") }
        // Like a child that was forked and has not reached its exec.
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

    @Test func dropsRemainingRequestsAndFreesHandlers() async throws {
        weak var seen: Captured?
        let events = Recorder<String>()
        do {
            let captured = Captured()
            seen = captured
            let server = try Self.start { [captured] request in
                if request.path != ["stream"] { events.record("begun") }
                switch request.path {
                case ["stream"]:
                    return HTTPServer.Response(
                        status: 200,
                        body: .stream(length: nil) { writer in
                            _ = captured
                            try await writer.write([1])
                            events.record("begun")
                            try await sleepUntilCancelled(events)
                        })
                case ["body"]:
                    do {
                        _ = try await request.body.collect(upTo: 1000)
                    } catch {
                        events.record("cancelled")
                        throw error
                    }
                default: try await sleepUntilCancelled(events)
                }
                return text("late")
            }
            let clients = try (0..<4).map { _ in try RawClient(server.port) }
            try await clients[0].send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            try await clients[1].send("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n")
            try await clients[2].send("POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nx")
            try await clients[3].send("GET / HT")
            try await until("three requests have begun") { events.count == 3 && server.connections == 4 }
            await server.shutdown(gracePeriod: .milliseconds(50))
            #expect(server.connections == 0)
            for client in clients { _ = try await client.rest() }
        }
        try await until("all handlers are cancelled") { events.all.count { $0 == "cancelled" } == 3 }
        let last = WeakBox(seen)
        try await until("the handlers are freed") { last.isGone }
    }

    @Test func supportsConcurrentShutdowns() async throws {
        let server = try Self.start { _ in text("") }
        async let first: Void = server.shutdown(gracePeriod: .seconds(1))
        async let second: Void = server.shutdown(gracePeriod: .zero)
        _ = await (first, second)
        #expect(server.connections == 0)
    }

    /// Shuts down repeatedly in the middle of requests of all kinds, which exposes misuse of libmicrohttpd.
    @Test func shutsDownUnderLoad() async throws {
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
            // Connects first, because a task may run only after the shutdown.
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
                            // The client ends with the server.
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

/// A weak reference that reports when its object is gone.
private final class WeakBox: @unchecked Sendable {
    // Sendable: written once, before it is shared; weak references are read atomically.
    private weak var object: AnyObject?
    init(_ object: AnyObject?) { self.object = object }
    var isGone: Bool { object == nil }
}
