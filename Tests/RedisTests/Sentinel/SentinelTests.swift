import Concurrency
import Glibc
import Redis
import Subprocess
import TestSupport
import Testing

/// Primaries named by sentinels.
@Suite(.limitedParallelism, .extended) struct SentinelTests {
    private func withSentinels(
        password: String? = nil, sentinelPassword: String? = nil,
        _ body: (RedisSentinels) async throws -> Void
    ) async throws {
        let sentinels = try await RedisSentinels.start(password: password, sentinelPassword: sentinelPassword)
        let result: Result<Void, any Error>
        do { result = .success(try await body(sentinels)) } catch { result = .failure(error) }
        await sentinels.stop()
        try result.get()
    }

    private func endpoint(_ sentinels: RedisSentinels, _ database: String = "") throws -> RedisEndpoint {
        try RedisEndpoint("redis+sentinel://\(sentinels.hosts)/\(RedisSentinels.service)\(database)")
    }

    /// A primary that dies, and one that hangs.
    @Test(arguments: [SIGKILL, SIGSTOP]) func followsFailover(signal: Int32) async throws {
        try await withSentinels { sentinels in
            let log = StateLog()
            let client = RedisClient(
                try endpoint(sentinels, "/2"), settings: shortTimeouts, onStateChange: log.record)
            let subscriber = RedisSubscriber(try endpoint(sentinels), settings: shortTimeouts)
            let received = Lock<Set<[UInt8]>>([])
            let reader = Task {
                await subscriber.follow("news") { message in
                    _ = received.withLock { $0.insert(message.payload) }
                }
            }
            #expect(try await client.reply(to: "SET", "a", "one") == .status("OK"))
            try await until("the client uses the primary") {
                try await client.masters() == [.tcp(host: "127.0.0.1", port: sentinels.servers[0].port)]
            }
            try await until("messages arrive") {
                _ = try await client.send("PUBLISH", "news", "first")
                return received.withLock { $0.contains(Array("first".utf8)) }
            }
            try await until("the replica has the key") {
                try await sentinels.servers[1].run("-n", "2", "GET", "a").contains("one")
            }
            sentinels.servers[0].process.send(signal)
            try await until("the replica is promoted") {
                try await client.send("SET", "b", "two") == .status("OK")
            }
            #expect(try await client.reply(to: "GET", "a").string == "one")
            try await until("the client uses the promoted replica") {
                try await client.masters() == [.tcp(host: "127.0.0.1", port: sentinels.servers[1].port)]
            }
            try await until("messages arrive again") {
                _ = try await client.send("PUBLISH", "news", "again")
                return received.withLock { $0.contains(Array("again".utf8)) }
            }
            try await until("the client is connected") { log.states.last == .connected }
            // Connected, lost, and connected again.
            #expect(log.states.count >= 3)
            sentinels.servers[0].process.send(SIGCONT)
            reader.cancel()
            await subscriber.close()
            await client.close()
        }
    }

    @Test func followsManualFailoverUnderLoad() async throws {
        try await withSentinels { sentinels in
            let client = RedisClient(try endpoint(sentinels), settings: quickReconnects)
            let isOver = Lock(false)
            let written = Lock<Set<UInt16>>([])
            let load = Task {
                while !isOver.withLock({ $0 }) {
                    do {
                        _ = try await client.send("INCR", "count")
                        guard case .tcp(_, let port)? = try await client.masters().first else { continue }
                        _ = written.withLock { $0.insert(port) }
                    } catch let error as RedisError {
                        #expect(error.isRetriable, "\(error)")
                    }
                }
            }
            try await until("the first primary receives writes") { written.withLock { $0.count == 1 } }
            try await until("the sentinel accepts the failover") {
                try await sentinels.sentinels[0].run("SENTINEL", "FAILOVER", RedisSentinels.service).contains("OK")
            }
            try await until("the other primary receives writes") { written.withLock { $0.count == 2 } }
            isOver.withLock { $0 = true }
            try await load.value
            await client.close()
        }
    }

    @Test func authenticatesToSentinelsAndServers() async throws {
        try await withSentinels(password: "hunter2", sentinelPassword: "eve3") { sentinels in
            let place = "\(sentinels.hosts)/\(RedisSentinels.service)"
            let client = RedisClient(
                try RedisEndpoint("redis+sentinel://default:hunter2@\(place)?sentinel-password=eve3"),
                settings: .patient())
            #expect(try await client.send("ACL", "WHOAMI").string == "default")
            await client.close()

            for (address, complaint) in [
                ("redis+sentinel://:hunter2@\(place)", "Authentication required"),
                ("redis+sentinel://\(place)?sentinel-password=eve3", "Authentication required"),
                ("redis+sentinel://:hunter2@\(place)?sentinel-password=no", "WRONGPASS"),
            ] {
                let error = try await refusal(by: RedisEndpoint(address))
                #expect(error.message.contains(complaint), "\(error)")
            }
        }
    }

    @Test func reportsUnknownService() async throws {
        try await withSentinels { sentinels in
            let dead = LoopbackPort.reserve()
            let error = try await refusal(
                by: RedisEndpoint("redis+sentinel://127.0.0.1:\(dead),\(sentinels.hosts)/other"))
            #expect(error.message.contains("knows no primary of other"), "\(error)")

            let log = StateLog()
            let other = RedisClient(
                try RedisEndpoint("redis+sentinel://127.0.0.1:\(dead),\(sentinels.hosts)/\(RedisSentinels.service)"),
                settings: quickReconnects, onStateChange: log.record)
            #expect(try await other.send("PING") == .status("PONG"))
            #expect(log.states == [.connected])
            await other.close()
        }
    }
}
