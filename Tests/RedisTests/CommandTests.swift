import CLinux
import Redis
import Subprocess
import TestSupport
import Testing

/// Commands and replies on a healthy server.
@Suite(.limitedParallelism) struct CommandTests {
    @Test func mapsAllReplyTypes() async throws {
        try await withRedis { _, client in
            #expect(try await client.send("PING") == .status("PONG"))
            #expect(try await client.send("GET", "nothing") == .null)
            #expect(try await client.send("INCRBY", "count", 41) == .integer(41))
            #expect(try await client.send("SET", "text", "häuser") == .status("OK"))
            #expect(try await client.send("GET", "text").string == "häuser")
            #expect(try await client.send("GET", "count").integer == 41)
            #expect(try await client.send("MGET", "count", "none") == .array([.bytes(Array("41".utf8)), .null]))
            let nested = try await client.send("EVAL", "return {1, {'a', {2, {}}}, false, {err = 'ODD one'}}", 0)
            #expect(
                nested
                    == .array([
                        .integer(1), .array([.bytes(Array("a".utf8)), .array([.integer(2), .array([])])]), .null,
                        .error(RedisError(.server("ODD"), "ODD one")),
                    ]))
        }
    }

    @Test func transfersAnyBytesUnchanged() async throws {
        try await withRedis { _, client in
            let all = (0...255).map { UInt8($0) }
            let long = Array(repeatElement(all, count: 40).joined())
            for body in [[], [0], all, long, Array("\r\n$5\r\n*3\r\n%s%b".utf8)] {
                _ = try await client.send("SET", .bytes(body), .bytes(body), "PX", 60_000)
                #expect(try await client.send("GET", .bytes(body)) == .bytes(body))
            }
            _ = try await client.send("MSET", .bytes(long), "between", .bytes(all), .bytes(long))
            #expect(
                try await client.send("MGET", .bytes(long), .bytes(all))
                    == .array([.bytes(Array("between".utf8)), .bytes(long)]))
        }
    }

    @Test func transfersTenMegabytes() async throws {
        try await withRedis { _, client in
            let body = (0..<10 << 20).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }
            async let small = client.send("PING")
            _ = try await client.send("SET", "large", .bytes(body))
            #expect(try await client.send("GET", "large") == .bytes(body))
            #expect(try await small == .status("PONG"))
        }
    }

    @Test func throwsErrorRepliesWithTheirCode() async throws {
        try await withRedis(["--maxmemory", "1500000", "--maxmemory-policy", "noeviction"]) { _, client in
            await expectFailure(.server("ERR")) { try await client.send("NOSUCHCOMMAND") }
            _ = try await client.send("SET", "text", "a")
            await expectFailure(.server("WRONGTYPE")) { try await client.send("LPUSH", "text", "b") }
            await expectFailure(.server("OOM")) {
                for number in 0..<100 {
                    _ = try await client.send("SET", "k\(number)", .bytes(Array(repeating: 7, count: 100_000)))
                }
            }
            #expect(try await client.send("PING") == .status("PONG"))
        }
    }

    @Test func matchesRepliesOfConcurrentTasksOnOneConnection() async throws {
        try await withRedis { _, client in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<5_000 {
                    group.addTask {
                        let reply = try await client.send("ECHO", .integer(number))
                        #expect(reply.integer == number)
                    }
                }
                try await group.waitForAll()
            }
            let connections = try await client.send("CLIENT", "LIST", "TYPE", "normal").string ?? ""
            #expect(connections.split(separator: "\n").count == 1)
        }
    }

    @Test func keepsTheOrderOfAPipeline() async throws {
        try await withRedis { _, client in
            let replies = try await client.pipeline(
                (0..<1_000).map { ["RPUSH", "list", .integer($0)] } + [["LRANGE", "list", 0, -1]])
            #expect(replies.count == 1_001)
            #expect(replies.last?.array?.map(\.integer) == (0..<1_000).map { $0 })
            #expect(try await client.pipeline([]).isEmpty)
        }
    }

    @Test func isolatesTransactions() async throws {
        try await withRedis { _, client in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<200 {
                    group.addTask {
                        let replies = try await client.pipeline([["MULTI"], ["INCR", "a"], ["INCR", "b"], ["EXEC"]])
                        guard let results = replies.last?.array else { throw RedisError(.protocolError, "\(replies)") }
                        #expect(replies[1] == .status("QUEUED"))
                        #expect(results[0] == results[1])
                    }
                    group.addTask { _ = try await client.send("GET", "a") }
                }
                try await group.waitForAll()
            }
            let replies = try await client.pipeline([["MULTI"], ["NOSUCHCOMMAND"], ["EXEC"]])
            #expect(
                replies[2]
                    == .error(
                        RedisError(.server("EXECABORT"), "EXECABORT Transaction discarded because of previous errors."))
            )
        }
    }

    @Test func runsScriptsByDigestAndSendsThemOnce() async throws {
        try await withRedis { _, client in
            let script = RedisScript("return {KEYS[1], ARGV[1], redis.call('INCR', KEYS[1])}")
            for turn in 1...3 {
                let reply = try await client.run(script, keys: ["counter"], arguments: ["\u{0}x"])
                #expect(reply == .array([.bytes(Array("counter".utf8)), .bytes([0, 120]), .integer(turn)]))
            }
            let stats = try await client.send("INFO", "commandstats").string ?? ""
            #expect(stats.contains("cmdstat_eval:calls=1,"))
            await expectFailure(.server("BOOM")) {
                try await client.run(RedisScript("return {err = 'BOOM now'}"), keys: [])
            }
        }
    }

    @Test(.extended) func leaksNoMemoryInTwoHundredThousandCommands() async throws {
        try await withRedis { _, client in
            func load(_ count: Int) async throws {
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for _ in 0..<100 {
                        group.addTask {
                            for number in 0..<count / 100 {
                                _ = try await client.send("SET", "k\(number)", "some value")
                            }
                        }
                    }
                    try await group.waitForAll()
                }
            }
            try await load(20_000)
            // Other tests run in this process too: their memory comes and goes, while a leak would show in every round.
            for round in 1... {
                let before = mallinfo2().uordblks
                try await load(200_000)
                let grown = Int(mallinfo2().uordblks) - Int(before)
                if grown < 1 << 20 { break }
                try #require(round < 5, "\(grown) bytes more in use")
            }
        }
    }
}
