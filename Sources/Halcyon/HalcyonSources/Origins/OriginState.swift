import Threads

/// What is known of one origin: who loads from it, how soon the next may, and whether it is left alone. A pure value, told
/// the time by its caller.
///
/// ``RedisOriginBook`` does the same in Redis' own language; one suite of tests holds for both.
struct OriginState: Sendable {
    typealias Instant = ContinuousClock.Instant

    private let limits: OriginLimits
    private var loads: [String: Instant] = [:]
    private var tokens: Double
    private var countedAt: Instant
    /// The loads of the last ``OriginLimits/window``, the oldest first, while one of them failed.
    private var recent: [(end: Instant, failedURL: String?)] = []
    private var rest = Duration.zero
    private var restsUntil: Instant?
    /// The one load that is let through after a rest.
    private var probe: String?

    init(_ limits: OriginLimits, at now: Instant) {
        self.limits = limits
        tokens = Double(limits.burst)
        countedAt = now
    }

    /// Whether there is nothing to remember.
    var isIdle: Bool { loads.isEmpty && recent.isEmpty && restsUntil == nil && tokens >= Double(limits.burst) }

    mutating func enter(_ load: String, at now: Instant) -> OriginAnswer {
        loads = loads.filter { now < $0.value }
        if let restsUntil {
            guard now >= restsUntil else { return .resting(now.duration(to: restsUntil)) }
            // One load finds out how the origin is; the others would make it no better.
            if let probe, let end = loads[probe] { return .resting(now.duration(to: end)) }
        }
        guard loads.count < limits.concurrency else { return .wait(.milliseconds(20)) }
        if limits.rate > 0 {
            tokens = min(Double(limits.burst), tokens + (countedAt.duration(to: now) / .seconds(1)) * limits.rate)
            countedAt = now
            guard tokens >= 1 else { return .wait(.seconds((1 - tokens) / limits.rate)) }
            tokens -= 1
        }
        loads[load] = now + limits.lease
        if restsUntil != nil { probe = load }
        return .go
    }

    mutating func prolong(_ names: Set<String>, at now: Instant) {
        for name in names { if let end = loads[name], now < end { loads[name] = now + limits.lease } }
    }

    mutating func leave(_ load: String, of url: String, _ outcome: OriginOutcome, at now: Instant) {
        loads[load] = nil
        let isProbe = probe == load
        if isProbe { probe = nil }
        guard outcome != .unknown, limits.failures > 0 else { return }
        if restsUntil != nil {
            // The probe alone says how the origin is; the others began before.
            guard isProbe else { return }
            (recent, restsUntil) = ([], nil)
            if outcome == .answered { rest = .zero } else { open(at: now) }
            return
        }
        recent.append((now, outcome == .failed ? url : nil))
        let start = now - limits.window
        recent = recent.filter { start < $0.end }.suffix(2 * limits.failures)
        let failed = recent.compactMap(\.failedURL)
        if failed.isEmpty { recent = [] }
        guard failed.count >= limits.failures, Set(failed).count >= min(limits.failingURLs, limits.failures) else {
            return
        }
        open(at: now)
    }

    private mutating func open(at now: Instant) {
        rest = min(rest == .zero ? limits.rest : rest * 2, limits.longestRest)
        restsUntil = now + rest
    }
}

/// The loads of this process alone: for when Redis is away.
final class LocalOriginBook: OriginBook {
    private let limits: OriginLimits
    private let origins = Lock<[Origin: OriginState]>([:])

    init(_ limits: OriginLimits) { self.limits = limits }

    func enter(_ origin: Origin, load: String) -> OriginAnswer {
        origins.withLock { $0[origin, default: OriginState(limits, at: .now)].enter(load, at: .now) }
    }

    func leave(_ origin: Origin, load: String, of url: String, _ outcome: OriginOutcome) {
        origins.withLock { origins in
            origins[origin]?.leave(load, of: url, outcome, at: .now)
            if origins[origin]?.isIdle == true { origins[origin] = nil }
        }
    }

    func prolong(_ loads: [Origin: Set<String>]) {
        origins.withLock { origins in
            for (origin, names) in loads { origins[origin]?.prolong(names, at: .now) }
        }
    }
}
