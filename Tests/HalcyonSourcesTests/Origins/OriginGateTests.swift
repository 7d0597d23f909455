import HalcyonModel
import Processes
import Redis
import TestSupport
import Testing
import Threads

@testable import HalcyonSources

@Suite struct OriginGateTests {
    let origin = Origin("https://img.example.org")

    /// Loads as many as are asked for through these gates, and tells how many were under way at once. Each goes on until so
    /// many are as are expected, so that it does not depend on how fast the machine is.
    private func most(_ loads: Int, through gates: [OriginGate], expecting expected: Int) async throws -> Int {
        let running = Lock((now: 0, most: 0))
        try await withThrowingTaskGroup(of: Void.self) { group in
            for load in 0..<loads {
                group.addTask { [origin] in
                    let gate = gates[load % gates.count]
                    let pass = try await gate.enter(origin, "u")
                    running.withLock { running in
                        running.now += 1
                        running.most = max(running.most, running.now)
                    }
                    try await until("\(expected) are under way") { running.withLock { $0.most >= expected } }
                    // Time for one more to come, were it let through.
                    try await Task.sleep(for: .milliseconds(10))
                    running.withLock { $0.now -= 1 }
                    await gate.leave(pass, .answered)
                }
            }
            try await group.waitForAll()
        }
        return running.withLock { $0.most }
    }

    @Test func workersShareAnOriginsPlaces() async throws {
        let server = try await RedisServer.start()
        let clients = (0..<3).map { _ in RedisClient(RedisEndpoint(loopbackPort: server.port)) }
        var limits = OriginLimits()
        limits.concurrency = 4
        limits.lease = .seconds(600)
        let gates = clients.map { OriginGate($0, limits) }
        #expect(try await most(120, through: gates, expecting: 4) == 4)
        for client in clients { await client.close() }
        await server.stop()
    }

    @Test func withoutRedisEachTakesHalfOfThem() async throws {
        var limits = OriginLimits()
        limits.concurrency = 6
        #expect(try await most(30, through: [OriginGate(nil, limits)], expecting: 6) == 6)
        let client = RedisClient(RedisEndpoint(loopbackPort: LoopbackPort.free()))
        #expect(try await most(30, through: [OriginGate(client, limits)], expecting: 3) == 3)
        await client.close()
    }

    @Test func whoIsCancelledWhileItWaitsLeavesTheOthersAlone() async throws {
        var limits = OriginLimits()
        limits.concurrency = 1
        let gate = OriginGate(nil, limits)
        let first = try await gate.enter(origin, "u")
        let waiting = (0..<3).map { _ in Task { [origin] in try await gate.enter(origin, "u") } }
        try await Task.sleep(for: .milliseconds(50))
        waiting[0].cancel()
        waiting[1].cancel()
        await #expect(throws: CancellationError.self) { try await waiting[0].value }
        await #expect(throws: CancellationError.self) { try await waiting[1].value }
        await gate.leave(first, .answered)
        await gate.leave(try await waiting[2].value, .answered)
    }

    @Test func whileAnOriginRestsItsLoadsFailAtOnceAndOthersDoNot() async throws {
        var limits = OriginLimits()
        limits.failures = 2
        limits.rest = .seconds(600)
        limits.longestRest = .seconds(600)
        let gate = OriginGate(nil, limits)
        for url in ["a", "b"] { await gate.leave(try await gate.enter(origin, url), .failed) }
        let failure = await #expect(throws: Failure.self) { try await gate.enter(origin, "u") }
        #expect(failure?.code == .originUnavailable && failure?.isRetryable == true)
        #expect(failure?.message.contains("https://img.example.org") == true)
        #expect((1...600).contains(failure?.retryAfter ?? 0))
        await gate.leave(try await gate.enter(Origin("https://other.example.org"), "u"), .answered)
    }
}
