import Concurrency
import Redis
import TestSupport
import Testing

@testable import HalcyonCoordination

/// Several processes that make the same products one after the other on a real Redis, and what became of it.
final class SoakFixture: Sendable {
    /// A work as it was stored: times are the server's, in microseconds.
    struct Stored {
        var product: Int
        var begun: Int
        var stored: Int
        var fence: Int
        /// The fence of what it overwrote; 0 where nothing was.
        var before: Int
    }

    struct Log {
        var works: [Int]
        var stored: [Stored] = []
        var ended = 0
        var faults = 0
        /// Of all products, in microseconds.
        var purges: [Int] = []
        var flushes: [Int] = []
        /// What is to happen to a process at its next work.
        var fates: [Int: Fate] = [:]
    }

    enum Fate { case crash, pause }

    private static let store = RedisScript(
        FencingTokens.check + """
            local now = redis.call('TIME')
            local before = redis.call('HGET', KEYS[2], 'fence') or '0'
            local out = isFencedOut(KEYS[1], KEYS[2], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[2]))
            if not out then redis.call('HSET', KEYS[2], 'fence', ARGV[2]) end
            return {out and 0 or 1, tonumber(before), now[1] * 1000000 + now[2]}
            """)
    private static let purge = RedisScript(
        FencingTokens.purge + """
            purge(KEYS[1])
            for i = 2, #KEYS do redis.call('UNLINK', KEYS[i]) end
            local now = redis.call('TIME')
            return now[1] * 1000000 + now[2]
            """)

    let fixture: LeaseFixture
    let log: Lock<Log>
    let names: [LeaseName]
    private let options: LeaseOptions

    init(_ fixture: LeaseFixture, products: Int, _ options: LeaseOptions = LeaseOptions()) {
        self.fixture = fixture
        self.options = options
        names = (0..<products).map { LeaseName(product: "\(fixture.product)\($0)") }
        log = Lock(Log(works: Array(repeating: 0, count: products)))
    }

    /// The server's time in microseconds.
    func time() async throws -> Int {
        let parts = try await fixture.redis.send(["TIME"]).array ?? []
        return try #require(parts[0].string.flatMap(Int.init)) * 1_000_000
            + #require(parts[1].string.flatMap(Int.init))
    }

    /// A process that wants all products, one after the other. What dies with it another process does.
    func work(as number: Int) async throws {
        var leases = try fixture.process(options)
        for product in names.indices {
            while try await !job(product, number, leases) { leases = try fixture.process(options) }
            log.withLock { $0.ended += 1 }
        }
    }

    /// - Returns: whether the process lives on.
    private func job(_ product: Int, _ number: Int, _ leases: Leases) async throws -> Bool {
        let attempt = leases.attempt([names[product]], .result, WorkPriority(level: 1))
        while true {
            let begun = try await time()
            switch try await attempt.acquire([(names[product], .nothing)])[0] {
            case .available:
                await attempt.end()
                return true
            case .heldByOther: _ = try await attempt.wait(for: [names[product]])
            case .unavailable:
                _ = try await make(product, number, begun, fence: 0, leases)
                await attempt.end()
                return true
            case .acquired(let lease):
                guard let isStored = try await make(product, number, begun, fence: lease.fence, leases) else {
                    return false
                }
                await attempt.finish(lease, isStored ? .stored : .givenUp)
            }
        }
    }

    /// - Returns: whether it was stored, or nil when the process died of it.
    private func make(_ product: Int, _ number: Int, _ begun: Int, fence: Int, _ leases: Leases) async throws -> Bool? {
        let fate = log.withLock { log in
            log.works[product] += 1
            return log.fates.removeValue(forKey: number)
        }
        try await Task.sleep(for: .milliseconds(30))
        if let fate {
            // From now on nothing is renewed.
            _ = await leases.keeper.close()
            if fate == .crash { return nil }
            try await Task.sleep(for: options.duration * 1.5)
        }
        let name = names[product]
        let reply =
            try await fixture.redis.run(
                Self.store, keys: [.string(name.fences), .string(name.product)],
                arguments: [.string(String(name.item)), .integer(fence)]
            ).array ?? []
        let isStored = reply[0].integer == 1
        let stored = Stored(
            product: product, begun: begun, stored: try #require(reply[2].integer), fence: fence,
            before: try #require(reply[1].integer))
        if isStored { log.withLock { $0.stored.append(stored) } }
        return isStored
    }

    // MARK: Faults

    func purge() async throws {
        let reply = try await fixture.redis.run(
            Self.purge, keys: [.string(names[0].fences)] + names.map { .string($0.product) })
        let time = try #require(reply.integer)
        log.withLock { $0.purges.append(time) }
    }

    func flush() async throws {
        let now = try await time()
        log.withLock { $0.flushes.append(now) }
        _ = try await fixture.redis.send(["FLUSHALL"])
    }
}
