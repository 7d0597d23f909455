import HalcyonModel
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

/// Who serves a source: scheme, host and port (RFC 6454). Loads of one origin are counted together, by all workers.
public struct Origin: Hashable, Sendable, CustomStringConvertible {
    /// `https://img.example.org:8443`; without the port where it is the scheme's own.
    public let description: String

    /// Of that name.
    public init(_ name: String) { description = name }

    /// Of a URL.
    public init(_ url: WebURL) {
        // The third slash begins the path, which a canonical URL always has.
        let parts = url.canonical.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false)
        let authority = parts[2].split(separator: "@", omittingEmptySubsequences: false).last ?? ""
        description = "\(parts[0])//\(authority)"
    }
}

/// How an origin is spared, by all workers together.
public struct OriginLimits: Hashable, Sendable {
    /// Loads that may be under way at once.
    public var concurrency = 16
    /// Loads a second, in the mean; 0 for any number.
    public var rate = 0.0
    /// Loads that may come at once after a quiet time, where there is a rate.
    public var burst = 16
    /// Failures that open an origin's circuit breaker when they are at least half of its last loads, of which it looks at
    /// twice as many; 0 for never.
    public var failures = 8
    /// The URLs that these failures must be of at least, so that the retries of one bad URL leave the others alone. No more than
    /// ``failures`` count.
    public var failingURLs = 3
    /// The age at which a load counts no longer.
    public var window = Duration.seconds(60)
    /// The time for which the breaker stays open; it doubles with each failure of the probe that is let through then.
    public var rest = Duration.seconds(5)
    /// The longest of these times.
    public var longestRest = Duration.seconds(120)
    /// When a load counts as over of which nothing was heard: its worker died. One that goes on is heard of three times in this time.
    public var lease = Duration.seconds(10)

    /// The defaults.
    public init() {}
}

/// What an origin's book says to a load.
enum OriginAnswer: Hashable, Sendable {
    /// Begin.
    case go
    /// Ask again, after this time or when another load has ended.
    case wait(Duration)
    /// The origin is left alone, for this time.
    case resting(Duration)
}

/// How a load went, as far as the origin is concerned.
enum OriginOutcome: String, CaseIterable, Hashable, Sendable {
    /// It answered, be it with a 404.
    case answered
    /// It did not answer, or with a trouble of its own.
    case failed
    /// Nobody knows: the load was given up.
    case unknown
}

/// Who counts the loads of origins.
protocol OriginBook: Sendable {
    /// A load wants to begin.
    /// - Parameter load: a name of its own.
    func enter(_ origin: Origin, load: String) async throws -> OriginAnswer
    /// A load that began has ended.
    /// - Parameter url: an identifier of what was loaded.
    func leave(_ origin: Origin, load: String, of url: String, _ outcome: OriginOutcome) async throws
    /// These loads, by their origins, go on. One that counts as over already stays so.
    func prolong(_ loads: [Origin: Set<String>]) async throws
}
