import Concurrency
import HalcyonCoordination
import HalcyonModel
import Redis
import Telemetry
import TestSupport
import Testing

@testable import HalcyonSources

/// Limits on the sources in memory.
@Suite struct SourceMemoryTests {
    @Test func largeSourceTakesSeveralPermits() async throws {
        let origin = RawOrigin { request in
            RawOrigin.answer("200 OK", [], String(repeating: "a", count: request.path.hasSuffix("large") ? 2_500 : 10))
        }
        try await withLoader({ $0.policy = AddressPolicy(allow: ["127.0.0.0/8"]) }) { loader in
            let permits = PrioritySemaphore(3)
            let cache = try SourceCache(
                loader, nil, permits: permits, bytesPerPermit: 1000, log: .silent, metrics: Metrics())
            @Sendable func load(_ path: String) async throws -> CachedSource {
                try await cache.fetch(SourceRequest(try Source(origin.url(path))))
            }
            let small = try await load("/small")
            var large: CachedSource? = try await load("/large")
            // One permit was left for the large source, and it takes three.
            let next = Task { try await load("/next") }
            try await until("the next load waits for a permit") { permits.waiting == 1 }
            #expect(origin.requests.count == 2)
            small.permit?.release()
            #expect(permits.waiting == 1)
            #expect(large?.source.body.count == 2_500)
            large = nil
            #expect(try await next.value.source.body.count == 10)
            await cache.close()
        }
        try await origin.stop()
    }

    @Test(.timeLimit(.minutes(2))) func waitingForAPermitKeepsNobodyFromTheOrigin() async throws {
        let isOpen = Lock(false)
        let origin = RawOrigin { request in
            let body = RawOrigin.answer("200 OK", [], "source")
            return request.path == "/slow" ? [.wait { isOpen.withLock { $0 } }] + body : body
        }
        try await withLoader({ $0.policy = AddressPolicy(allow: ["127.0.0.0/8"]) }) { loader in
            var limits = OriginLimits()
            limits.concurrency = 1
            limits.lease = .seconds(600)
            let permits = PrioritySemaphore(4, reserve: 1)
            let metrics = Metrics()
            let cache = try SourceCache(loader, nil, permits: permits, limits: limits, log: .silent, metrics: metrics)
            @Sendable func load(_ path: String, of flow: String) async throws -> CachedSource {
                let context = WorkContext(urgency: WorkPriority(level: 0, flow: Flow(flow)))
                return try await cache.fetch(SourceRequest(try Source(origin.url(path))), .standard, context)
            }
            // The semaphore learns of both flows, and that "big" has had more than its share.
            for _ in 0..<4 { try await permits.acquire() }
            let turns = ["big", "big", "big", "small"].map { flow in
                Task {
                    try await permits.acquire(WorkPriority(level: 0, flow: Flow(flow)))
                    permits.release()
                }
            }
            try await until("all wait") { permits.waiting == 4 }
            permits.release(4)
            for turn in turns { try await turn.value }

            let slow = Task { try await load("/slow", of: "big") }
            try await until("the origin is busy") { origin.requests.count == 1 }
            let waiting = Task { try await load("/next", of: "big") }
            try await until("the next load waits for the origin") {
                metrics.value(of: "halcyon_origin_waiting") == 1
            }
            // Permits that nobody else can have remain but for the reserve.
            for _ in 0..<2 { try await permits.acquire() }
            isOpen.withLock { $0 = true }
            let held = try await slow.value
            try await until("the next load waits for a permit") { permits.waiting == 1 }
            let small = try await load("/small", of: "small")
            #expect(small.source.body.count == 6 && permits.waiting == 1)
            #expect(origin.requests.map(\.path) == ["/slow", "/small"])
            permits.release(2)
            #expect(try await waiting.value.source.body.count == 6)
            held.permit?.release()
            await cache.close()
        }
        try await origin.stop()
    }

    /// Returns an archive whose copies are made once the gate is open. It counts the originals for which a copy is
    /// considered.
    private static func archive(_ gate: AsyncEvent, _ considered: Lock<Int>) -> SourceArchive {
        SourceArchive(identity: "1", log: .silent, metrics: Metrics()) { _ in
            considered.withLock { $0 += 1 }
            return true
        } make: { _, _, _ in
            await gate.wait()
            return (copy: Array("copy".utf8), format: ImageFormat.jpeg, size: PixelSize(width: 9, height: 9))
        }
    }

    /// Checks that a permit is free for the source `/b`.
    private static func expectFetch(
        of request: SourceRequest, by cache: SourceCache, from origin: RawOrigin
    ) async throws {
        let fetched = Task { try await cache.fetch(request).source.body }
        try await until("another source is requested") { origin.requests.map(\.path).contains("/b") }
        #expect(try await fetched.value == Array("source".utf8))
    }

    private static func expectCopies(_ callers: [Task<CachedSource, any Error>]) async throws {
        for caller in callers {
            let copy = try await caller.value.source.body
            #expect(copy == Array("copy".utf8))
        }
    }

    /// Jobs that wait for the copy of a large source would otherwise hold its bytes several times.
    @Test func waitingForACopyKeepsNoOriginal() async throws {
        let origin = RawOrigin { _ in RawOrigin.answer("200 OK", [], "source") }
        try await withLoader({ $0.policy = AddressPolicy(allow: ["127.0.0.0/8"]) }) { loader in
            let permits = PrioritySemaphore(1)
            let cache = try SourceCache(loader, nil, permits: permits, log: .silent, metrics: Metrics())
            let request = SourceRequest(try Source(origin.url("/a")))
            let archive = Self.archive(AsyncEvent(), Lock(0))
            let copy = CopyWork(archive: archive, original: try await cache.fetch(request))
            let work = CoalescedSourceFetch(
                request: request, use: .standard, cache: cache, first: .nothing, copy: copy)
            #expect(copy.original != nil && !permits.tryAcquire())
            work.willWait()
            #expect(copy.original == nil)
            // The operation that fetched the original may still be ending.
            try await until("the permit is free") { permits.tryAcquire() }
            await cache.close()
        }
        try await origin.stop()
    }

    @Test func waitingForACopyOfTheSameProcessTakesNoPermit() async throws {
        let origin = RawOrigin { _ in RawOrigin.answer("200 OK", ["Cache-Control: max-age=600"], "source") }
        let folder = TemporaryFolder("copies")
        try await withLoader({ $0.policy = AddressPolicy(allow: ["127.0.0.0/8"]) }) { loader in
            var options = SourceCacheOptions()
            options.folder = folder.path
            let cache = try SourceCache(
                loader, nil, permits: PrioritySemaphore(2), options: options, log: .silent, metrics: Metrics())
            let (gate, considered) = (AsyncEvent(), Lock(0))
            let archive = Self.archive(gate, considered)
            let (source, other) = (
                SourceRequest(try Source(origin.url("/a"))), SourceRequest(try Source(origin.url("/b")))
            )
            let first = Task { try await cache.fetch(source, copyFrom: archive) }
            try await until("the first caller has the original") { considered.withLock { $0 } == 1 }
            let second = Task { try await cache.fetch(source, copyFrom: archive) }
            try await until("the second caller has the original, too") { considered.withLock { $0 } == 2 }
            // One of them makes the copy with one of the two permits.
            try await Self.expectFetch(of: other, by: cache, from: origin)
            gate.signal()
            try await Self.expectCopies([first, second])
            await cache.close()
        }
        await folder.remove()
        try await origin.stop()
    }

    /// A process that cannot get the copy from the other one fetches its original again, and makes its own.
    @Test(.limitedParallelism, arguments: [true, false])
    func waitingForACopyOfAnotherProcessTakesNoPermit(isStored: Bool) async throws {
        let origin = RawOrigin { _ in RawOrigin.answer("200 OK", ["Cache-Control: max-age=600"], "source") }
        let server = try await RedisServer.start()
        let redis = RedisClient(try RedisEndpoint(server.url))
        let subscriber = RedisSubscriber(try RedisEndpoint(server.url))
        var options = LeaseOptions()
        (options.duration, options.fallbackTimeout) = (.seconds(600), .seconds(60))
        let leases = (0..<2).map { _ in Leases(redis, subscriber, options, log: .silent, metrics: Metrics()) }
        try await withLoader({ $0.policy = AddressPolicy(allow: ["127.0.0.0/8"]) }) { loader in
            var options = SourceCacheOptions()
            if !isStored { (options.copyBytes, options.handOverBytes) = (0, 0) }
            let caches = try leases.map {
                try SourceCache(
                    loader, redis, $0, permits: PrioritySemaphore(1), options: options, log: .silent,
                    metrics: Metrics())
            }
            let (gate, considered) = (AsyncEvent(), Lock(0))
            let archive = Self.archive(gate, considered)
            let (source, other) = (
                SourceRequest(try Source(origin.url("/a"))), SourceRequest(try Source(origin.url("/b")))
            )
            let first = Task { try await caches[0].fetch(source, copyFrom: archive) }
            try await until("the copy is being made") {
                let lease = source.copyKey.replacing(":copy", with: ":lease:copy")
                return try await redis.send("EXISTS", .string(lease)).integer == 1
            }
            let second = Task { try await caches[1].fetch(source, copyFrom: archive) }
            try await until("the other process has the original") { considered.withLock { $0 } == 2 }
            try await Self.expectFetch(of: other, by: caches[1], from: origin)
            gate.signal()
            try await Self.expectCopies([first, second])
            #expect(origin.requests.map(\.path) == ["/a", "/b"])
            for cache in caches { await cache.close() }
        }
        for lease in leases { await lease.close() }
        await subscriber.close()
        await redis.close()
        await server.stop()
        try await origin.stop()
    }

    /// Small sources set the expected size; then all sources are large.
    @Test(arguments: [true, false])
    func limitsMemoryOfUnexpectedlyLargeSources(saysItsLength: Bool) async throws {
        let (large, count) = (100_000, 40)
        let origin = RawOrigin { request in
            guard request.path.hasPrefix("/large") else { return RawOrigin.answer("200 OK", [], "small") }
            let length = saysItsLength ? "Content-Length: \(large)" : "Connection: close"
            return [.text("HTTP/1.1 200 OK\r\n\(length)\r\n\r\n"), .zeros(large), .close]
        }
        try await withLoader({ $0.policy = AddressPolicy(allow: ["127.0.0.0/8"]) }) { loader in
            let permits = PrioritySemaphore(count)
            let cache = try SourceCache(
                loader, nil, permits: permits, bytesPerPermit: 10_000, log: .silent, metrics: Metrics())
            for number in 0..<50 { _ = try await cache.fetch(SourceRequest(try Source(origin.url("/small\(number)")))) }
            let held = Lock((bytes: 0, most: 0))
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<count {
                    group.addTask {
                        let source = try await cache.fetch(SourceRequest(try Source(origin.url("/large\(number)"))))
                        held.withLock {
                            $0.bytes += source.source.body.count
                            $0.most = max($0.most, $0.bytes)
                        }
                        try await Task.sleep(for: .milliseconds(20))
                        held.withLock { $0.bytes -= source.source.body.count }
                        source.permit?.release()
                    }
                }
                try await group.waitForAll()
            }
            // All permits, and what one source may take beyond them.
            #expect(held.withLock { $0.most } <= count * 10_000 + large)
            await cache.close()
        }
        try await origin.stop()
    }
}
