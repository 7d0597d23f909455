import Threads

/// What is known of one origin: who loads from it, how soon the next may, and whether it is left alone. A pure value, told
/// the time by its caller.
///
/// ``RedisOriginBook`` does the same in Redis' own language; one suite of tests holds for both.
struct OriginState: Sendable {
    typealias Instant = ContinuousClock.Instant

    private let limits: OriginLimits
    private var loads: [String: Instant] = [:]
    /// nil for any number of loads a second.
    private var bucket: TokenBucket?
    private var breaker: CircuitBreaker<String>
    /// The one load that is let through after a rest.
    private var probe: String?

    init(_ limits: OriginLimits, at now: Instant) {
        self.limits = limits
        if limits.rate > 0 { bucket = TokenBucket(rate: limits.rate, burst: Double(limits.burst), now: now) }
        breaker = CircuitBreaker(limits.breaker)
    }

    /// Whether there is nothing to remember.
    func isIdle(at now: Instant) -> Bool {
        loads.isEmpty && breaker.isIdle && bucket?.isFull(at: now) ?? true
    }

    mutating func enter(_ load: String, at now: Instant) -> OriginAnswer {
        loads = loads.filter { now < $0.value }
        switch breaker.state(at: now) {
        case .closed, .halfOpen: break
        case .open(let end): return .resting(now.duration(to: end))
        case .probing:
            // One load finds out how the origin is; the others would make it no better.
            if let probe, let end = loads[probe] { return .resting(now.duration(to: end)) }
            breaker.abandonProbe()
        }
        guard loads.count < limits.concurrency else { return .wait(.milliseconds(20)) }
        if let time = bucket?.take(at: now) { return .wait(time) }
        loads[load] = now + limits.lease
        if breaker.beginProbe(at: now) { probe = load }
        return .go
    }

    mutating func prolong(_ names: Set<String>, at now: Instant) {
        for name in names { if let end = loads[name], now < end { loads[name] = now + limits.lease } }
    }

    mutating func leave(_ load: String, of url: String, _ outcome: OriginOutcome, at now: Instant) {
        loads[load] = nil
        breaker.record(CircuitBreaker.Outcome(outcome), of: url, isProbe: probe == load, at: now)
        if probe == load { probe = nil }
    }
}

extension OriginLimits {
    fileprivate var breaker: CircuitBreaker<String>.Policy {
        CircuitBreaker.Policy(
            failures: failures, samples: 2 * failures, keys: min(failingURLs, failures), window: window,
            openTime: Backoff(initial: rest, maximum: longestRest))
    }
}

extension CircuitBreaker.Outcome {
    fileprivate init(_ outcome: OriginOutcome) {
        self =
            switch outcome {
            case .answered: .success
            case .failed: .failure
            case .unknown: .unknown
            }
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
            if origins[origin]?.isIdle(at: .now) == true { origins[origin] = nil }
        }
    }

    func prolong(_ loads: [Origin: Set<String>]) {
        origins.withLock { origins in
            for (origin, names) in loads { origins[origin]?.prolong(names, at: .now) }
        }
    }
}
