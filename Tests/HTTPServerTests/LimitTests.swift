import Concurrency
import Glibc
import TestSupport
import Testing

@testable import HTTPServer

/// Limits on clients, just below and just above each limit.
@Suite(.limitedParallelism) struct LimitTests {
    @Test func limitsConnectionsInTotalAndPerAddress() async throws {
        let notes = Recorder<String>()
        try await withServer {
            $0.limits.connections = 5
            $0.limits.connectionsPerAddress = 3
            $0.note = { notes.record("\($0)") }
        } handler: { _ in
            text("in")
        } _: { server in
            func connect(_ address: String) async throws -> RawClient? {
                let client = try RawClient(server.port, from: address)
                return (try? await client.get("/")) == nil ? nil : client
            }
            var first: [RawClient] = []
            for _ in 0..<3 { first.append(try #require(await connect("127.0.0.1"))) }
            #expect(try await connect("127.0.0.1") == nil)
            try await until("the connection is closed") { server.connections == 3 }
            let others = [try #require(await connect("127.0.0.2")), try #require(await connect("127.0.0.2"))]
            #expect(try await connect("127.0.0.3") == nil)
            try await until("the connection is closed") { server.connections == 5 }
            let limits = notes.all.filter { $0.hasPrefix("connectionLimit(") }
            #expect(limits.count { $0.contains("connection limit of 3 per address reached") } == 1)
            #expect(limits.count { $0.contains("connection limit of 5 reached") } == 1)
            // Accepted clients are still served, and a closed connection makes room for another.
            let still = try await others[0].get("/")
            #expect(still.text == "in")
            first = []
            try await until("the connections are closed") { server.connections == 2 }
            #expect(try await connect("127.0.0.1") != nil)
        }
    }

    @Test func limitsHeadSize() async throws {
        try await withServer {
            $0.limits.headBytes = 8 << 10
        } handler: { request in
            text("\(request.headers.fields.count)")
        } _: { server in
            let fitting = try await RawClient(server.port).get("/", "X: \(String(repeating: "x", count: 5000))\r\n")
            #expect(fitting.text == "2")
            let headers = try await RawClient(server.port).get("/", "X: \(String(repeating: "x", count: 9000))\r\n")
            #expect(headers.status == 431)
            let many = String(repeating: "X: y\r\n", count: 2000)
            let fields = try await RawClient(server.port).get("/", many)
            #expect(fields.status == 431)
            let target = try await RawClient(server.port).get("/" + String(repeating: "x", count: 9000))
            #expect(target.status == 414)
        }
    }

    /// Bytes that arrive slowly do not keep a connection alive.
    @Test(arguments: ["", "GET /", "GET / HTTP/1.1\r\nHost: a\r\n"])
    func limitsHeadTime(begun: String) async throws {
        try await withServer {
            $0.limits.headTime = .milliseconds(400)
        } handler: { _ in
            text("")
        } _: { server in
            let client = try RawClient(server.port)
            try await client.send(begun)
            let drip = Task {
                while !Task.isCancelled, client.offer(Array("x".utf8)[...]) >= 0 {
                    try await Task.sleep(for: .milliseconds(50))
                }
            }
            let answer = try await client.answer()
            drip.cancel()
            #expect(answer.status == 408)
            try await until("the connection is closed") { server.connections == 0 }
        }
    }

    @Test func limitsIdleTime() async throws {
        try await withServer {
            // Also the time in which a busy machine must send the first request.
            $0.limits.idleTime = .seconds(3)
        } handler: { _ in
            text("once")
        } _: { server in
            let client = try RawClient(server.port)
            let answer = try await client.get("/")
            #expect(answer.text == "once")
            let rest = try await client.rest()
            #expect(rest.isEmpty)
            try await until("the connection is closed") { server.connections == 0 }
        }
    }

    @Test func answers503InsteadOfLateHandler() async throws {
        let (events, begun, reads) = (Recorder<String>(), Recorder<String>(), Recorder<String>())
        try await withServer {
            $0.limits.requestTime = .milliseconds(300)
        } handler: { request in
            begun.record(request.target)
            // One handler is cancelled, one ignores its cancellation, and one does not read its body.
            if request.path == ["deaf"] { while events.count < 2 { try? await Task.sleep(for: .milliseconds(5)) } }
            if request.path == ["half"] {
                _ = try await request.body.next()
                reads.record(request.target)
            }
            try await sleepUntilCancelled(events)
            return text("late")
        } _: { server in
            for target in ["/", "/body", "/deaf"] {
                // On a busy machine, a request may be answered before its handler begins.
                while !begun.all.contains(target) {
                    let client = try RawClient(server.port)
                    try await client.send("POST \(target) HTTP/1.1\r\nHost: a\r\n")
                    try await client.send(target == "/body" ? "Content-Length: 100\r\n\r\nxyz" : "\r\n")
                    let answer = try await client.answer()
                    #expect(answer.status == 503 && answer.text == "The request took too long.\n")
                }
            }
            try await until("both handlers are cancelled") { events.count >= 2 }
            // On a busy machine, a request may be answered before its handler has read the part.
            var (attempts, status, isRead) = (0, 0, false)
            repeat {
                attempts += 1
                let half = "/half?\(attempts)"
                let client = try RawClient(server.port)
                try await client.send("POST \(half) HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nxyz")
                status = try await client.answer().status
                isRead = reads.all.contains(half)
            } while !isRead && attempts < 100
            #expect(isRead && status == 503)
            try await until("all connections are closed") { server.connections == 0 }
        }
    }

    /// A body that the handler waits for is late because of the client, and any other one because of the handler.
    @Test(arguments: [true, false]) func tellsWhoIsLate(isAwaited: Bool) async throws {
        let limits = HTTPServer.Limits()
        let connection = ConnectionHandle(pointer: try #require(OpaquePointer(bitPattern: 16)))
        var state = HTTPTransactionState(connection, socket: -1, framing: .length(1000), limits: limits)
        var decision = HTTPTransactionState.TimeoutDecision.fine
        state.stage = .body
        await withCheckedContinuation { (waiter: HTTPTransactionState.Waiter) in
            if isAwaited { state.upload.waiter = waiter }
            decision = state.check(state.deadline, limits)
            waiter.resume()
        }
        guard case .cut(_, let status) = decision else {
            Issue.record("the request is not late")
            return
        }
        #expect(status == (isAwaited ? 408 : 503))
    }

    @Test func startsNoHandlerAfterTheResponse() throws {
        let limits = HTTPServer.Limits()
        let connection = ConnectionHandle(pointer: try #require(OpaquePointer(bitPattern: 16)))
        var state = HTTPTransactionState(connection, socket: -1, framing: .none, limits: limits)
        guard case .refuse(let error) = state.check(.now + limits.requestTime, limits) else {
            Issue.record("the request is not late")
            return
        }
        let task = state.refuse(HTTPServer.Response(status: error.status, text: error.reason))
        let isFirst = state.isFirstStep()
        #expect(task == nil && !isFirst)
    }

    /// The monitor responds before the handler's task is known.
    @Test func cancelsHandlersThatAreLateBeforeTheySuspend() async throws {
        let (isLate, begun, events) = (Latch(), Recorder<String>(), Recorder<String>())
        try await withServer {
            $0.limits.requestTime = .milliseconds(100)
            $0.note = { _ in isLate.open() }
        } handler: { request in
            begun.record(request.target)
            isLate.wait()
            // The response follows the note.
            usleep(20_000)
            try await sleepUntilCancelled(events)
            return text("late")
        } _: { server in
            #expect(try await RawClient(server.port).get("/").status == 503)
            // On a busy machine, the request may be answered before its handler begins.
            try await until("the handler is cancelled") { events.count == begun.count }
        }
    }

    /// The limit is on the whole body, not on the time between two bytes.
    @Test func limitsBodyTime() async throws {
        let (begun, failures) = (Recorder<String>(), Recorder<String>())
        try await withServer {
            $0.limits.requestTime = .milliseconds(500)
        } handler: { request in
            begun.record(request.target)
            do {
                return text("\(try await request.body.collect(upTo: 1000).count)")
            } catch {
                failures.record("\(error)")
                throw error
            }
        } _: { server in
            let head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n"
            var status = 0
            // On a busy machine, the handler may exceed the limit itself, or the limit may pass before the handler
            // begins.
            for _ in 0..<20 where status != 408 {
                let silent = try RawClient(server.port)
                try await silent.send(head)
                status = try await silent.answer().status
                #expect(status == 408 || status == 503)
            }
            #expect(status == 408)
            let client = try RawClient(server.port)
            try await client.send(head)
            let drip = Task {
                while !Task.isCancelled, client.offer(Array("x".utf8)[...]) >= 0 {
                    try await Task.sleep(for: .milliseconds(20))
                }
            }
            let answer = try await client.answer()
            drip.cancel()
            // A handler that has received a byte and waits for a processor is late itself.
            #expect(answer.status == 408 || answer.status == 503)
            try await until("the handlers fail") { failures.count == begun.count }
            #expect(Set(failures.all) == ["connectionLost"])
            try await until("the connection is closed") { server.connections == 0 }
        }
    }
}
