import Glibc
import Redis
import Subprocess
import TestSupport
import Testing

/// Authentication, lost connections and reconnecting.
@Suite(.limitedParallelism) struct ConnectionTests {
    @Test func authenticatesWithPasswordAndSelectsDatabase() async throws {
        let server = try await RedisServer.start(["--requirepass", "hunter2"])
        let client = RedisClient(
            try RedisEndpoint("redis://:hunter2@localhost:\(server.port)/3"), settings: .patient())
        #expect(try await client.send("SET", "a", 1) == .status("OK"))
        #expect(try await client.send("INFO", "keyspace").string?.contains("db3:keys=1") == true)
        await client.close()
        await server.stop()
    }

    @Test func authenticatesAsUser() async throws {
        let server = try await RedisServer.start(["--user", "anna", "on", ">pass/word", "~*", "&*", "+@all"])
        let client = RedisClient(
            try RedisEndpoint("redis://anna:pass%2Fword@127.0.0.1:\(server.port)"), settings: .patient())
        #expect(try await client.send("ACL", "WHOAMI").string == "anna")
        await client.close()
        await server.stop()
    }

    @Test(arguments: [("redis://:wrong@", "WRONGPASS"), ("redis://", "NOAUTH")])
    func reportsAuthenticationErrors(prefix: String, code: String) async throws {
        let server = try await RedisServer.start(["--requirepass", "hunter2"])
        let error = try await refusal(by: RedisEndpoint("\(prefix)127.0.0.1:\(server.port)"))
        #expect(error.code == .server(code))
        #expect(!error.message.contains("wrong@"))
        await server.stop()
    }

    @Test func connectsOverUnixSocket() async throws {
        let path = "/tmp/redis-door-\(getpid())-\(UInt32.random(in: 0 ... .max)).sock"
        let server = try await RedisServer.start(["--unixsocket", path])
        let client = RedisClient(try RedisEndpoint("unix:\(path)"), settings: .patient())
        #expect(try await client.send("PING") == .status("PONG"))
        await client.close()
        await server.stop()
    }

    @Test func failsDuringOutageAndConnectsLater() async throws {
        let port = LoopbackPort.reserve()
        var settings = refusedConnections
        settings.outageGrace = .milliseconds(100)
        let client = RedisClient(RedisEndpoint(loopbackPort: port), settings: settings)
        await expectFailure(.unavailable) { try await client.send("PING") }
        await expectFailure(.unavailable) { try await client.send("PING") }
        let server = try await RedisServer.start(port: port)
        try await until("the client has connected") { try await client.send("PING") == .status("PONG") }
        await client.close()
        await server.stop()
    }

    @Test func failsCommandsInFlightWhenServerDiesAndReconnects() async throws {
        let log = StateLog()
        try await withRedis(settings: quickReconnects, onStateChange: log.record) { server, client in
            let id = try #require(try await client.send("CLIENT", "ID").integer)
            // While the first command waits for an element, the server only receives the others.
            let first = Task { await expectFailure(.connectionLost) { try await client.send("BLPOP", "list", 0) } }
            try await until("the first command waits") {
                try await server.run("CLIENT", "LIST", "ID", "\(id)").contains("cmd=blpop")
            }
            let others = (0..<100).map { _ in
                Task { await expectFailure(.connectionLost) { try await client.send("INCR", "a") } }
            }
            let bytes = 100 * "*2\r\n$4\r\nINCR\r\n$1\r\na\r\n".utf8.count
            try await until("the other commands have arrived") {
                try await server.run("CLIENT", "LIST", "ID", "\(id)").contains("qbuf=\(bytes) ")
            }
            server.process.send(SIGKILL)
            for task in [first] + others { await task.value }
            await server.process.exit()

            let next = try await RedisServer.start(port: server.port)
            try await until("the client has reconnected") { try await client.send("GET", "a") == .null }
            guard log.states.count == 3, case .lost = log.states[1] else {
                throw RedisError(.protocolError, "states: \(log.states)")
            }
            #expect(log.states[0] == .connected && log.states[2] == .connected)
            await next.stop()
        }
    }

    @Test func timesOutOnSilentServerAndReconnects() async throws {
        let log = StateLog()
        try await withRedis(settings: shortTimeouts, onStateChange: log.record) { server, client in
            try await until("the client has connected") { try await client.send("PING") == .status("PONG") }
            server.process.send(SIGSTOP)
            await expectFailure(.timeout) { try await client.send("SET", "a", 1) }
            try await until("the lost connection is reported") { log.isLost }
            server.process.send(SIGCONT)
            try await until("the client has reconnected") { try await client.send("PING") == .status("PONG") }
            #expect(log.states.count >= 3 && log.isAlternating)
        }
    }

    @Test func urlSetsTheCommandTimeout() async throws {
        let server = try await RedisServer.start()
        let client = RedisClient(try RedisEndpoint("redis://127.0.0.1:\(server.port)?timeout=100ms"))
        try await until("the client has connected") { try await client.send("PING") == .status("PONG") }
        server.process.send(SIGSTOP)
        // The default is two seconds.
        let error = try await #require(throws: RedisError.self) { try await client.send("PING") }
        #expect(error.code == .timeout && error.message == "no reply within 0.1 seconds")
        server.process.send(SIGCONT)
        await client.close()
        await server.stop()
    }

    @Test func cancellationKeepsRepliesMatched() async throws {
        try await withRedis { server, client in
            _ = try await client.send("PING")
            server.process.send(SIGSTOP)
            let first = Task { await expectFailure(.cancelled) { try await client.send("ECHO", "one") } }
            let second = Task { try await client.send("ECHO", "two") }
            try await Task.sleep(for: .milliseconds(200))
            first.cancel()
            await first.value
            server.process.send(SIGCONT)
            #expect(try await second.value.string == "two")
            #expect(try await client.send("ECHO", "three").string == "three")
        }
    }

    @Test func doesNotSendForCancelledTask() async throws {
        try await withRedis { _, client in
            let task = Task {
                while !Task.isCancelled { await Task.yield() }
                await expectFailure(.cancelled) { try await client.send("SET", "a", 1) }
            }
            task.cancel()
            await task.value
            let value = try await client.send("GET", "a")
            #expect(value == .null)
        }
    }

    @Test func handlesManyConcurrentCancellations() async throws {
        try await withRedis { _, client in
            await withTaskGroup(of: Void.self) { group in
                for number in 0..<2_000 {
                    group.addTask {
                        let task = Task { try await client.send("ECHO", .integer(number)) }
                        if number % 2 == 0 { task.cancel() }
                        switch await task.result {
                        case .success(let reply): #expect(reply.integer == number)
                        case .failure(let error): #expect((error as? RedisError)?.code == .cancelled)
                        }
                    }
                }
            }
            let last = try await client.send("ECHO", "still in step")
            #expect(last.string == "still in step")
        }
    }

    @Test func closingFailsPendingAndLaterCommands() async throws {
        try await withRedis { server, client in
            _ = try await client.send("PING")
            server.process.send(SIGSTOP)
            let inFlight = Task { await expectFailure(.closed) { try await client.send("PING") } }
            try await Task.sleep(for: .milliseconds(200))
            await client.close()
            await inFlight.value
            await expectFailure(.closed) { try await client.send("PING") }
            server.process.send(SIGCONT)
        }
    }

    @Test func closesWhileDisconnected() async throws {
        let client = RedisClient(try RedisEndpoint("redis://no-such-host.invalid"), settings: refusedConnections)
        await expectFailure(.unavailable) { try await client.send("PING") }
        await client.close()
    }
}
