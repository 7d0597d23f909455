import Concurrency
import Redis
import TestSupport
import Testing

@testable import HalcyonCoordination

/// Several processes that produce the same products one after the other on a real Redis, and a log of the outcome.
final class SoakFixture: Sendable {
    /// A stored product. Times are the server's, in microseconds.
    struct Stored {
        var product: Int
        var startedAt: Int
        var storedAt: Int
        var fence: Int
        /// The fence of the overwritten product; 0 for none.
        var previousFence: Int
    }

    struct Log {
        var executions: [Int]
        var stored: [Stored] = []
        var completedJobs = 0
        var faults = 0
        /// The times of purges of all products, in microseconds.
        var purges: [Int] = []
        var flushes: [Int] = []
        /// The fault that each process has at its next execution.
        var pendingFaults: [Int: Fault] = [:]
    }

    enum Fault { case crash, pause }

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
        log = Lock(Log(executions: Array(repeating: 0, count: products)))
    }

    /// The server's time in microseconds.
    func time() async throws -> Int {
        let parts = try await fixture.redis.send(["TIME"]).array ?? []
        return try #require(parts[0].string.flatMap(Int.init)) * 1_000_000
            + #require(parts[1].string.flatMap(Int.init))
    }

    /// Runs a process that requests all products, one after the other. After a crash, a new process continues.
    func runProcess(_ number: Int) async throws {
        var leases = try fixture.process(options)
        for product in names.indices {
            while try await !processProduct(product, number, leases) { leases = try fixture.process(options) }
            log.withLock { $0.completedJobs += 1 }
        }
    }

    /// - Returns: false if the process has crashed.
    private func processProduct(_ product: Int, _ number: Int, _ leases: Leases) async throws -> Bool {
        let attempt = leases.attempt([names[product]], .result, WorkPriority(level: 1))
        while true {
            let startedAt = try await time()
            switch try await attempt.acquire([(names[product], .nothing)])[0] {
            case .available:
                await attempt.end()
                return true
            case .heldByOther: _ = try await attempt.wait(for: [names[product]])
            case .unavailable:
                _ = try await produce(product, number, startedAt, fence: 0, leases)
                await attempt.end()
                return true
            case .acquired(let lease):
                guard let isStored = try await produce(product, number, startedAt, fence: lease.fence, leases) else {
                    return false
                }
                await attempt.finish(lease, isStored ? .stored : .givenUp)
            }
        }
    }

    /// - Returns: whether the product was stored; nil if the process crashed.
    private func produce(
        _ product: Int, _ number: Int, _ startedAt: Int, fence: Int, _ leases: Leases
    ) async throws -> Bool? {
        let fault = log.withLock { log in
            log.executions[product] += 1
            return log.pendingFaults.removeValue(forKey: number)
        }
        try await Task.sleep(for: .milliseconds(30))
        if let fault {
            // Stops renewals.
            _ = await leases.keeper.close()
            if fault == .crash { return nil }
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
            product: product, startedAt: startedAt, storedAt: try #require(reply[2].integer), fence: fence,
            previousFence: try #require(reply[1].integer))
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
