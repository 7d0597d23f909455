import Redis
import TestSupport
import Testing

@testable import HalcyonCluster

/// The worker registry in a real Redis.
@Suite(.limitedParallelism) struct WorkerRegistryTests {
    private func withRegistry(_ body: (WorkerRegistry, RedisClient) async throws -> Void) async throws {
        let server = try await RedisServer.start()
        let redis = RedisClient(try RedisEndpoint(server.url), settings: .patient())
        let result: Result<Void, any Error>
        do { result = .success(try await body(WorkerRegistry(redis), redis)) } catch { result = .failure(error) }
        await redis.close()
        await server.stop()
        try result.get()
    }

    private func entry(_ id: String, _ jobs: [String: Int] = [:]) -> WorkerInfo {
        WorkerInfo(
            id: id, host: "h", pid: 7, version: "1.0", since: 1_795_257_067_000, threads: 2, jobs: jobs)
    }

    private func texts(_ registry: WorkerRegistry) async throws -> [String] {
        try await registry.entries().map { String(decoding: $0, as: UTF8.self) }
    }

    @Test func listsRegisteredWorkersUntilTheyDeregister() async throws {
        try await withRegistry { registry, _ in
            #expect(try await registry.entries().isEmpty)
            try await registry.register(entry("b"), for: .seconds(600))
            try await registry.register(entry("a", ["high": 2, "normal": 0]), for: .seconds(600))
            #expect(
                try await texts(registry) == [
                    #"{"id":"a","host":"h","pid":7,"version":"1.0","since":"2026-11-21T10:31:07.000Z","threads":2,"jobs":{"high":2,"normal":0},"finished":0,"rate":0.0,"memory":0}"#,
                    #"{"id":"b","host":"h","pid":7,"version":"1.0","since":"2026-11-21T10:31:07.000Z","threads":2,"jobs":{},"finished":0,"rate":0.0,"memory":0}"#,
                ])
            try await registry.register(entry("b", ["low": 1]), for: .seconds(600))
            #expect(try await texts(registry)[1].contains(#""jobs":{"low":1}"#))
            try await registry.deregister("a")
            #expect(try await texts(registry).count == 1)
        }
    }

    @Test func entryNamesTheBusiestTenants() async throws {
        try await withRegistry { registry, _ in
            var busy = entry("a", ["low": 3])
            (busy.finished, busy.rate, busy.memory) = (70, 2.5, 64 << 20)
            busy.tenants = Dictionary(uniqueKeysWithValues: (1...12).map { ("t\($0)", $0 / 2) })
            try await registry.register(busy, for: .seconds(600))
            let json = try await registry.entries()[0]
            #expect(
                String(decoding: json, as: UTF8.self).hasSuffix(
                    #""tenants":{"t12":6,"t10":5,"t11":5,"t8":4,"t9":4,"t6":3,"t7":3,"t4":2,"t5":2,"t2":1}}"#))
            let decoded = try #require(WorkerInfo(json: json))
            #expect(decoded.id == "a" && decoded.since == busy.since && decoded.jobs == ["low": 3])
            #expect(decoded.finished == 70 && decoded.rate == 2.5 && decoded.memory == 64 << 20)
            #expect(decoded.tenants.count == WorkerInfo.mostTenants && decoded.tenants["t12"] == 6)
        }
        #expect(WorkerInfo(json: Array(#"{"id":"x","jobs":[1],"later":true}"#.utf8))?.jobs == [:])
        #expect(WorkerInfo(json: Array("{}".utf8)) == nil)
    }

    @Test func workerExpiresWithoutHeartbeats() async throws {
        try await withRegistry { registry, redis in
            try await registry.register(entry("gone"), for: .milliseconds(50))
            try await registry.register(entry("there"), for: .seconds(600))
            try await until("the entry has expired") { try await texts(registry).count == 1 }
            #expect(try await texts(registry)[0].contains(#""id":"there""#))
            // The hash expires if nobody reads it, and malformed entries are ignored.
            #expect(try await redis.send("HLEN", "halcyon:{workers}").integer == 1)
            #expect(try await redis.send("PTTL", "halcyon:{workers}").integer.map { $0 > 0 } == true)
            _ = try await redis.send("HSET", "halcyon:{workers}", "x", "9999999999999 {half")
            #expect(try await texts(registry).count == 1)
        }
    }
}
