import Concurrency
import HalcyonCoordination
import HalcyonModel
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
