import Concurrency
import Formats
import HalcyonModel
import Redis
import Subprocess
import Telemetry
import TestSupport
import Testing

@testable import HalcyonSources

/// Requirements of all source stores.
@Suite(.limitedParallelism) struct SourceStoreTests {
    enum Kind: CaseIterable { case redis, cluster, disk }

    static func entry(_ body: [UInt8], etag: String = "\"a\"") -> SourceEntry {
        let request: HTTPFields = ["Accept": "image/*"]
        return SourceEntry(
            response: StoredResponse(
                status: 200,
                headers: ["ETag": etag, "Vary": "Accept", "Cache-Control": "max-age=9, x=\"ä\\\"\""],
                request: request, requestedAt: 100, receivedAt: 101),
            body: body)
    }

    /// Runs `body` with a store of this kind, and stops its server or removes its folder.
    static func with(_ kind: Kind, _ body: (any SourceStore) async throws -> Void) async throws {
        switch kind {
        case .redis, .cluster:
            let deployment = try await RedisDeployment.start(kind == .cluster ? .cluster : .server)
            let client = RedisClient(try RedisEndpoint(deployment.url))
            let result = await outcome { try await body(RedisSourceStore(client, maximumBytes: 1 << 20)) }
            await client.close()
            await deployment.stop()
            try result.get()
        case .disk:
            let folder = TemporaryFolder("sources")
            let result = await outcome {
                let store = try await blocking { try DiskSourceStore(under: folder.path, capacity: 1 << 20) }
                let result = await outcome { try await body(store) }
                await blocking { store.close() }
                try result.get()
            }
            await folder.remove()
            try result.get()
        }
    }

    private static func outcome(_ body: () async throws -> Void) async -> Result<Void, any Error> {
        do { return .success(try await body()) } catch { return .failure(error) }
    }

    @Test(arguments: Kind.allCases) func returnsStoredEntries(_ kind: Kind) async throws {
        try await Self.with(kind) { store async throws in
            #expect(try await store.find("halcyon:{a}:source") == nil)
            let body = (0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
            try await store.store(Self.entry(body), as: "halcyon:{a}:source", for: 60)
            try await store.store(Self.entry([]), as: "halcyon:{b}:source", for: 60)
            let found = try #require(try await store.find("halcyon:{a}:source"))
            #expect(found.entry == Self.entry(body))
            #expect(found.residentTime >= 0 && found.residentTime < 60)
            #expect(try await store.find("halcyon:{b}:source")?.entry == Self.entry([]))
            try await store.store(Self.entry([1], etag: "\"b\""), as: "halcyon:{a}:source", for: 60)
            #expect(try await store.find("halcyon:{a}:source")?.entry == Self.entry([1], etag: "\"b\""))
            try await store.remove("halcyon:{a}:source")
            try await store.remove("halcyon:{c}:source")
            #expect(try await store.find("halcyon:{a}:source") == nil)
            #expect(try await store.find("halcyon:{b}:source") != nil)
        }
    }

    @Test(arguments: Kind.allCases) func storesFailures(_ kind: Kind) async throws {
        try await Self.with(kind) { store async throws in
            var entry = Self.entry([])
            entry.failure = JobError(.notFound, "the origin answered 404 \"\u{1F600}\"")
            try await store.store(entry, as: "halcyon:{k}:source", for: 60)
            #expect(try await store.find("halcyon:{k}:source")?.entry == entry)
            entry.failure = JobError(.httpError, "the origin answered 503", retryAfter: 2.5)
            try await store.store(entry, as: "halcyon:{k}:source", for: 60)
            #expect(try await store.find("halcyon:{k}:source")?.entry == entry)
        }
    }

    @Test(arguments: Kind.allCases) func expiresEntriesAndReportsResidentTime(_ kind: Kind) async throws {
        try await Self.with(kind) { store async throws in
            try await store.store(Self.entry([2]), as: "halcyon:{long}:source", for: 1000)
            try await store.store(Self.entry([1]), as: "halcyon:{short}:source", for: 0.2)
            try await until("the entry has expired") { try await store.find("halcyon:{short}:source") == nil }
            let found = try #require(try await store.find("halcyon:{long}:source"))
            #expect(found.residentTime > 0.1 && found.residentTime < 900)
        }
    }

    @Test(arguments: Kind.allCases) func oversizedEntryRemovesTheOldOne(_ kind: Kind) async throws {
        try await Self.with(kind) { store async throws in
            try await store.store(Self.entry([1]), as: "halcyon:{k}:source", for: 60)
            try await store.store(
                Self.entry([UInt8](repeating: 7, count: 1 << 20 + 1)), as: "halcyon:{k}:source", for: 60)
            #expect(try await store.find("halcyon:{k}:source") == nil)
        }
    }

    @Test(arguments: Kind.allCases) func concurrentWritesDoNotMixEntries(_ kind: Kind) async throws {
        try await Self.with(kind) { store async throws in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for task in 0..<8 {
                    group.addTask {
                        for round in 0..<40 {
                            let key = "halcyon:{\((task + round) % 5)}:source"
                            try await store.store(
                                Self.entry([UInt8](repeating: UInt8(round), count: 20_000)), as: key, for: 60)
                            if let body = try await store.find(key)?.entry.body { #expect(Set(body).count == 1) }
                            if round % 9 == 0 { try await store.remove(key) }
                        }
                    }
                }
                try await group.waitForAll()
            }
        }
    }

    /// A store that cannot be asked may have the source.
    @Test func cacheOnlyLookupFailsTemporarilyWithoutRedis() async throws {
        let origin = RawOrigin { _ in RawOrigin.answer("200 OK", ["Cache-Control: max-age=600"], "a source") }
        let folder = TemporaryFolder("sources")
        try await withLoader({ $0.policy = AddressPolicy(allow: ["127.0.0.0/8"]) }) { loader in
            var settings = RedisSettings()
            (settings.connectTimeout, settings.outageGrace) = (.milliseconds(50), .milliseconds(50))
            let redis = RedisClient(RedisEndpoint(loopbackPort: LoopbackPort.reserve()), settings: settings)
            var options = SourceCacheOptions()
            options.folder = folder.path
            let cache = try SourceCache(loader, redis, options: options, log: .silent, metrics: Metrics())
            let request = SourceRequest(try Source(origin.url("/a")))
            let error = await #expect(throws: JobError.self) { try await cache.fetch(request, .onlyKept) }
            #expect(error?.code == .internal && error?.isRetryable == true)
            #expect(origin.requests.isEmpty)
            // A source on disk needs no other store.
            _ = try await cache.fetch(request)
            let kept = try await cache.fetch(request, .onlyKept)
            #expect(kept.isFromCache)
            await cache.close()
            await redis.close()
        }
        await folder.remove()
        try await origin.stop()
    }

    @Test func ignoresMalformedAndPermanentRedisEntries() async throws {
        let server = try await RedisServer.start()
        let client = RedisClient(try RedisEndpoint(server.url))
        let store = RedisSourceStore(client, maximumBytes: 1 << 20)
        for about in ["", "{", "[]", #"{"version":2}"#, #"{"version":1,"status":"200"}"#] {
            _ = try await client.send([
                "HSET", "halcyon:{k}:source", "about", .string(about), "lifetime", "60000", "body", "x",
            ])
            _ = try await client.send(["PEXPIRE", "halcyon:{k}:source", "60000"])
            #expect(try await store.find("halcyon:{k}:source") == nil)
        }
        // An entry without a TTL does not belong to this cache.
        _ = try await client.send([
            "HSET", "p", "about", .bytes(Self.entry([]).description), "lifetime", "9", "body", "x",
        ])
        #expect(try await store.find("p") == nil)
        await client.close()
        await server.stop()
    }
}
