import Redis
import TestSupport
import Testing

@testable import HalcyonCluster

/// The roll of workers, in a real Redis.
@Suite struct WorkerRollTests {
    private func with(_ body: (WorkerRoll, RedisClient) async throws -> Void) async throws {
        let server = try await RedisServer.start()
        let redis = RedisClient(RedisEndpoint(loopbackPort: server.port))
        let result: Result<Void, any Error>
        do { result = .success(try await body(WorkerRoll(redis), redis)) } catch { result = .failure(error) }
        await redis.close()
        await server.stop()
        try result.get()
    }

    private func entry(_ id: String, _ jobs: [String: Int] = [:]) -> WorkerEntry {
        WorkerEntry(
            id: id, host: "h", pid: 7, version: "1.0", since: 1_795_257_067_000, threads: 2, jobs: jobs)
    }

    private func texts(_ roll: WorkerRoll) async throws -> [String] {
        try await roll.entries().map { String(decoding: $0, as: UTF8.self) }
    }

    @Test func whoSignsIsThereUntilTheyLeave() async throws {
        try await with { roll, _ in
            #expect(try await roll.entries().isEmpty)
            try await roll.sign(entry("b"), for: .seconds(600))
            try await roll.sign(entry("a", ["high": 2, "normal": 0]), for: .seconds(600))
            #expect(
                try await texts(roll) == [
                    #"{"id":"a","host":"h","pid":7,"version":"1.0","since":"2026-11-21T10:31:07.000Z","threads":2,"jobs":{"high":2,"normal":0}}"#,
                    #"{"id":"b","host":"h","pid":7,"version":"1.0","since":"2026-11-21T10:31:07.000Z","threads":2,"jobs":{}}"#,
                ])
            try await roll.sign(entry("b", ["low": 1]), for: .seconds(600))
            #expect(try await texts(roll)[1].contains(#""jobs":{"low":1}"#))
            try await roll.leave("a")
            #expect(try await texts(roll).count == 1)
        }
    }

    @Test func whoSignsNoMoreGoesByItself() async throws {
        try await with { roll, redis in
            try await roll.sign(entry("gone"), for: .milliseconds(50))
            try await roll.sign(entry("there"), for: .seconds(600))
            try await until("it is off the roll") { try await texts(roll).count == 1 }
            #expect(try await texts(roll)[0].contains(#""id":"there""#))
            // Neither what nobody reads nor what is no entry stays for ever.
            #expect(try await redis.send("HLEN", "halcyon:{workers}").integer == 1)
            #expect(try await redis.send("PTTL", "halcyon:{workers}").integer.map { $0 > 0 } == true)
            _ = try await redis.send("HSET", "halcyon:{workers}", "x", "9999999999999 {half")
            #expect(try await texts(roll).count == 1)
        }
    }
}
