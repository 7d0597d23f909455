import Concurrency
import HalcyonCoordination
import Redis
import Telemetry

/// The quota of all sources in Redis, over all tenants and including metadata.
public enum SourceBudget: Hashable, Sendable {
    /// A quarter of the memory of Redis (`maxmemory`, the sum of all primaries), and 256 MiB if it has no limit.
    case automatic
    /// A number of bytes.
    case bytes(Int)
    /// No quota of its own, and no accounting.
    case unlimited
}

/// Reads the budget of the sources, for ``SourceBudget/automatic`` from Redis.
final class SourceBudgetReader: Sendable {
    /// The part of the memory of Redis.
    static let share = 4
    /// The budget in bytes if the memory of Redis has no limit.
    static let withoutLimit = 256 << 20
    /// The time for which a limit is used before it is read again, because operators change it while Redis runs.
    private static let refreshInterval = Duration.seconds(300)

    private let budget: SourceBudget
    private let redis: RedisClient
    private let errors: ToleratedErrors
    private let state = Lock<(budget: Budget?, readAt: ContinuousClock.Instant?)>((nil, nil))

    init(_ budget: SourceBudget, _ redis: RedisClient, errors: ToleratedErrors) {
        (self.budget, self.redis, self.errors) = (budget, redis, errors)
    }

    /// Returns the current budget; nil for no limit, also if Redis has not told its limit yet.
    func current() async -> Budget? {
        switch budget {
        case .unlimited: return nil
        case .bytes(let bytes): return Budget(bytes: bytes)
        case .automatic: break
        }
        let now = ContinuousClock.now
        let (known, isDue) = state.withLock { state in
            let isDue = state.readAt.map { $0.duration(to: now) >= Self.refreshInterval } ?? true
            // Only one task asks.
            if isDue { state.readAt = now }
            return (state.budget, isDue)
        }
        guard isDue else { return known }
        guard let found = await errors.tolerating({ try await read() }) else {
            state.withLock { $0.readAt = nil }
            return known
        }
        state.withLock { $0.budget = found }
        return found
    }

    private func read() async throws(RedisError) -> Budget {
        var total = 0
        for reply in try await redis.sendToAllPrimaries(["INFO", "memory"]) {
            let text = try reply.outcome.get().string ?? ""
            let line = text.split(whereSeparator: \.isNewline).first { $0.hasPrefix("maxmemory:") }
            guard let limit = line.flatMap({ Int($0.dropFirst("maxmemory:".utf8.count)) }), limit > 0 else {
                return Budget(bytes: Self.withoutLimit)
            }
            total += limit
        }
        return Budget(bytes: total / Self.share)
    }
}
