import Concurrency
import Formats
import HalcyonCoding
import Redis
import Telemetry
import TestSupport
import Testing

@testable import HalcyonCluster

/// Registered presets in a real Redis.
@Suite(.limitedParallelism) struct PresetStoreTests {
    private func withStore(_ body: (PresetStore, RedisClient, RedisServer) async throws -> Void) async throws {
        let server = try await RedisServer.start()
        // Two tests stop the server, so commands fail soon instead of waiting for a new server.
        let redis = RedisClient(try RedisEndpoint(server.url), settings: .patient(outageGrace: .milliseconds(500)))
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

    private static func all(_ index: PresetIndex, pages count: Int) async throws -> [String] {
        var (found, cursor): ([String], PresetIndex.Cursor?) = ([], nil)
        repeat {
            let page = try await index.page(of: "card", after: cursor, count)
            #expect(page.jobs.count <= count)
            found += page.jobs.map { String(decoding: $0.json, as: UTF8.self) }
            let next = page.next
            // The position survives as text, and increases.
            if let next, let cursor { #expect(cursor.text.utf8.lexicographicallyPrecedes(next.text.utf8)) }
            cursor = next.flatMap { PresetIndex.Cursor($0.text) }
            #expect((next == nil) == (cursor == nil))
        } while cursor != nil
        return found
    }

    @Test func listsTheJobsOfAPresetByPages() async throws {
        try await withStore { _, redis, _ async throws in
            let index = PresetIndex(redis, topics: Topics())
            #expect(try await Self.all(index, pages: 3).isEmpty)
            let now = Double(Timestamp.now.milliseconds) / 1000
            let jobs = (0..<10).map { #"{"source":"initials:\#($0)"}"# }
            // Some of them expire at the same time.
            for (number, job) in jobs.enumerated() {
                try await index.add(Array(job.utf8), to: "card", until: now + 600 + Double(number / 4))
            }
            for count in [1, 2, 3, 4, 10, 100] {
                #expect(try await Self.all(index, pages: count).sorted() == jobs, "\(count)")
            }
            // The later expiry applies, and the key expires with the last job.
            let last = now + 900
            try await index.add(Array(jobs[0].utf8), to: "card", until: last)
            try await index.add(Array(jobs[0].utf8), to: "card", until: now + 300)
            #expect(try await Self.all(index, pages: 4).last == jobs[0])
            let expiry = try await redis.send("PEXPIRETIME", .string("halcyon:preset:{\(Topics().prefix)/card}"))
            #expect(expiry.integer == Int((last * 1000).rounded(.up)))
            // Jobs that are made again during a list are not listed twice.
            let first = try await index.page(of: "card", after: nil, 4)
            try await index.add(Array(jobs[1].utf8), to: "card", until: now + 2000)
            let second = try await index.page(of: "card", after: first.next, 100)
            #expect(first.jobs.count == 4 && second.jobs.count <= 6 && second.next == nil)
            #expect(try await index.page(of: "other", after: nil, 4).jobs.isEmpty)
        }
    }

    @Test func removesTheJobsOfATenantFromAllPresets() async throws {
        try await withStore { _, redis, _ async throws in
            let index = PresetIndex(redis, topics: Topics())
            let until = Timestamp.now.seconds + 6000
            for preset in ["card", "page"] {
                for number in 0..<1500 {
                    let tenant = number.isMultiple(of: 3) ? "shop" : "shop-2"
                    let job = #"{"source":"initials:\#(number)","tenant":"\#(tenant)"}"#
                    try await index.add(Array(job.utf8), to: preset, until: until)
                }
            }
            try await PresetIndex(redis, topics: Topics(prefix: "other.")).removeAll(of: "shop")
            #expect(try await Self.all(index, pages: 1000).count == 1500)
            try await index.removeAll(of: "shop")
            let left = try await Self.all(index, pages: 1000)
            #expect(left.count == 1000 && left.allSatisfy { $0.contains("shop-2") })
            #expect(try await index.page(of: "page", after: nil, 2000).jobs.count == 1000)
        }
    }

    @Test func theIndexIsBounded() async throws {
        try await withStore { _, redis, _ async throws in
            var options = PresetIndexOptions()
            (options.mostEntries, options.longestEntry) = (3, 30)
            let index = PresetIndex(redis, topics: Topics(), options)
            let later = Timestamp.now.seconds + 6000
            for number in 0..<5 {
                try await index.add(
                    Array(#"{"source":"\#(number)"}"#.utf8), to: "card", until: later - Double(number))
            }
            // Those that expire first are removed.
            #expect(try await Self.all(index, pages: 10) == (0..<3).reversed().map { #"{"source":"\#($0)"}"# })
            try await index.add(Array(#"{"source":"initials:far too long"}"#.utf8), to: "card", until: later + 30)
            #expect(try await Self.all(index, pages: 10).count == 3)
            // Expired jobs are removed, and are not listed before.
            _ = try await redis.send(
                "ZADD", .string("halcyon:preset:{\(Topics().prefix)/card}"), 1000, #"{"source":"old"}"#)
            #expect(try await Self.all(index, pages: 10).count == 3)
            options.mostEntries = 0
            try await PresetIndex(redis, topics: Topics(), options).add([0x7b, 0x7d], to: "card", until: later + 39)
            #expect(try await Self.all(index, pages: 10).count == 3)
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
        let (refresher, gate) = (Refresher(), AsyncEvent())
        let (calls, loads) = (Lock(0), Lock(0))
        try await withThrowingTaskGroup(of: Void.self) { group in
            defer { gate.signal() }
            for _ in 0..<1000 {
                group.addTask {
                    calls.withLock { $0 += 1 }
                    try await refresher.refresh {
                        loads.withLock { $0 += 1 }
                        await gate.wait()
                        return nil
                    }
                }
            }
            try await until("all have called") { calls.withLock { $0 } == 1000 }
            gate.signal()
            try await group.waitForAll()
        }
        // Calls during the first load wait for a second one.
        let count = loads.withLock { $0 }
        #expect((1...2).contains(count))
    }

    /// Redis may have no persistence, and all processes may be restarted before the next load.
    @Test(arguments: [false, true]) func catalogRestoresPresetsThatRedisLost(whenItCloses: Bool) async throws {
        try await withStore { store, redis, _ async throws in
            _ = try await store.put(preset(1))
            _ = try await store.put(preset(2))
            let catalog = PresetCatalog([], store, log: .silent)
            try await catalog.reload()
            _ = try await redis.send("FLUSHALL")
            if whenItCloses { await catalog.close() } else { try await catalog.reload() }
            #expect(catalog["card"]?.version == 2)
            #expect(try await store.entries()["card"]?.version == 2)
        }
    }

    /// A preset may be registered after the loss and before the others are stored again.
    @Test func catalogRestoresPresetsThatRedisLostInPart() async throws {
        try await withStore { store, redis, _ async throws in
            _ = try await store.put(preset(1))
            _ = try await store.put(preset(2, name: "list"))
            let catalog = PresetCatalog([], store, log: .silent)
            try await catalog.reload()
            _ = try await redis.send("FLUSHALL")
            _ = try await store.put(preset(3, name: "new"))
            try await catalog.reload()
            #expect(catalog.all.map(\.name) == ["card", "list", "new"])
            #expect(Set(try await store.entries().keys) == ["card", "list", "new"])
        }
    }

    @Test func presetsMayBeLostOnlyForAWhile() async throws {
        try await withStore { store, _, _ async throws in
            let young = PresetCatalog([], store, restorationTime: .seconds(3600), log: .silent)
            #expect(!young.mayLackLostPresets)
            try await young.reload()
            #expect(young.mayLackLostPresets)
            let old = PresetCatalog([], store, restorationTime: .zero, log: .silent)
            try await old.reload()
            #expect(!old.mayLackLostPresets)
            _ = try await store.put(preset(1))
            try await young.reload()
            #expect(!young.mayLackLostPresets)
        }
    }

    /// A preset may be stored again, or registered, before the others.
    @Test func presetsMayBeLostAfterAFailureOfRedis() async throws {
        try await withStore { store, _, server async throws in
            _ = try await store.put(preset(1))
            let young = PresetCatalog([], store, restorationTime: .seconds(3600), log: .silent)
            let old = PresetCatalog([], store, restorationTime: .zero, log: .silent)
            try await young.reload()
            #expect(!young.mayLackLostPresets)
            await server.stop()
            for catalog in [young, old] { await #expect(throws: RedisError.self) { try await catalog.reload() } }
            #expect(young.mayLackLostPresets && !old.mayLackLostPresets)
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
