import HalcyonCoding
import Redis
import Telemetry
import TestSupport
import Testing

@testable import HalcyonCluster

/// Registered presets in a real Redis.
@Suite struct PresetStoreTests {
    private func withStore(_ body: (PresetStore, RedisClient, RedisServer) async throws -> Void) async throws {
        let server = try await RedisServer.start()
        let redis = RedisClient(RedisEndpoint(loopbackPort: server.port))
        let result: Result<Void, any Error>
        do {
            result = .success(try await body(PresetStore(redis, topics: Topics()), redis, server))
        } catch {
            result = .failure(error)
        }
        await redis.close()
        await server.stop()
        try result.get()
    }

    private func preset(_ width: Int, version: Int? = nil, name: String = "card") throws -> Preset {
        let version = version.map { #","version":\#($0)"# } ?? ""
        return try Preset(name, json: Array(#"{"job":{"width":\#(width)}\#(version)}"#.utf8))
    }

    @Test func eachChangeHasTheNextVersion() async throws {
        try await withStore { store, _, _ async throws in
            #expect(try await store.put(preset(1)) == .stored(version: 1))
            #expect(try await store.put(preset(2)) == .stored(version: 2))
            #expect(try await store.put(preset(2)) == .unchanged(version: 2))
            #expect(try await store.put(preset(3, version: 7)) == .stored(version: 7))
            #expect(try await store.put(preset(3, version: 7)) == .unchanged(version: 7))
            #expect(try await store.put(preset(3, version: 8)) == .stored(version: 8))
            for version in [7, 8] {
                await #expect(throws: PresetError.oldVersion("card", last: 8)) {
                    try await store.put(preset(4, version: version))
                }
            }
        }
    }

    @Test func versionsOfDeletedPresetsAreNotUsedAgain() async throws {
        try await withStore { store, _, _ async throws in
            #expect(try await !store.delete("card"))
            _ = try await store.put(preset(1))
            #expect(try await store.delete("card"))
            #expect(try await !store.delete("card"))
            #expect(try await store.entries()["card"]?.contents == nil)
            #expect(try await store.put(preset(1)) == .stored(version: 2))
        }
    }

    @Test func limitsTheNumberOfPresets() async throws {
        try await withStore { store, redis, _ async throws in
            _ = try await store.put(preset(1))
            for number in 1..<PresetStore.most {
                _ = try await redis.send("HSET", "halcyon:presets:{halcyon.}", "\(number)", "1 {\"job\":{}}")
            }
            await #expect(throws: PresetError.tooMany) { try await store.put(preset(1, name: "other")) }
            #expect(try await store.put(preset(2)) == .stored(version: 2))
        }
    }

    @Test func clustersWithDifferentPrefixesHaveDifferentPresets() async throws {
        try await withStore { store, redis, _ async throws in
            _ = try await store.put(preset(1))
            #expect(try await PresetStore(redis, topics: Topics(prefix: "other.")).entries().isEmpty)
        }
    }

    @Test func catalogPrefersPresetsOfTheSettings() async throws {
        try await withStore { store, _, _ async throws in
            _ = try await store.put(preset(1))
            _ = try await store.put(preset(2, name: "list"))
            let catalog = PresetCatalog([try preset(9, version: 5)], store, log: .silent)
            #expect(catalog["list"] == nil)
            try await catalog.reload()
            #expect(catalog["card"]?.version == 5 && catalog["list"]?.version == 1)
            #expect(catalog.all.map(\.name) == ["card", "list"])
            #expect(catalog.isFixed("card") && !catalog.isFixed("list"))
        }
    }

    @Test func catalogForgetsDeletedPresetsAndIgnoresInvalidOnes() async throws {
        try await withStore { store, redis, _ async throws in
            _ = try await store.put(preset(1))
            _ = try await redis.send("HSET", "halcyon:presets:{halcyon.}", "broken", "1 {", "odd", "x")
            let catalog = PresetCatalog([], store, log: .silent)
            try await catalog.reload()
            #expect(catalog.all.map(\.name) == ["card"])
            _ = try await store.delete("card")
            try await catalog.reload()
            #expect(catalog.all.isEmpty)
        }
    }

    @Test func concurrentCallsShareOneLoad() async throws {
        try await withStore { store, redis, _ async throws in
            let catalog = PresetCatalog([], store, log: .silent)
            func loads() async throws -> Int {
                let text = try await redis.send("INFO", "commandstats").string ?? ""
                let line = text.split(separator: "\r\n").first { $0.hasPrefix("cmdstat_hgetall:calls=") }
                return line.flatMap { Int($0.dropFirst("cmdstat_hgetall:calls=".count).prefix { $0 != "," }) } ?? 0
            }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<1000 { group.addTask { try await catalog.reload() } }
                try await group.waitForAll()
            }
            // Calls during the first load wait for a second one.
            #expect((1...2).contains(try await loads()))
        }
    }

    /// Redis may have no persistence.
    @Test func catalogRestoresPresetsThatRedisLost() async throws {
        try await withStore { store, redis, _ async throws in
            _ = try await store.put(preset(1))
            _ = try await store.put(preset(2))
            let catalog = PresetCatalog([], store, log: .silent)
            try await catalog.reload()
            _ = try await redis.send("FLUSHALL")
            try await catalog.reload()
            #expect(catalog["card"]?.version == 2)
            #expect(try await store.entries()["card"]?.version == 2)
        }
    }

    @Test func catalogKeepsItsCopiesWhileRedisIsUnavailable() async throws {
        try await withStore { store, _, server async throws in
            _ = try await store.put(preset(1))
            let catalog = PresetCatalog([], store, log: .silent)
            try await catalog.reload()
            await server.stop()
            await #expect(throws: RedisError.self) { try await catalog.reload() }
            #expect(catalog["card"]?.version == 1)
        }
    }
}
