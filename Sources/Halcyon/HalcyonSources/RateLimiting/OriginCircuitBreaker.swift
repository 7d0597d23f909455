import Concurrency
import HalcyonModel

/// The rate limiter and circuit breaker of one origin: loads in flight, a token bucket, and the breaker. A pure value;
/// the caller passes the time.
///
/// ``RedisOriginLimiterStore`` implements the same logic in Lua. One test suite covers both.
struct OriginCircuitBreaker: Sendable {
    typealias Instant = ContinuousClock.Instant

    private let limits: OriginLimits
    private var loads: [String: Instant] = [:]
    /// The token bucket; nil if the rate is unlimited.
    private var bucket: TokenBucket?
    private var breaker: CircuitBreaker<String>
    /// The load that was admitted as the probe of a half-open breaker.
    private var probe: String?

    init(_ limits: OriginLimits, at now: Instant) {
        self.limits = limits
        if limits.rate > 0 { bucket = TokenBucket(rate: limits.rate, burst: Double(limits.burst), now: now) }
        breaker = CircuitBreaker(limits.breaker)
    }

    /// True if there is no state to retain.
    func isIdle(at now: Instant) -> Bool {
        loads.isEmpty && breaker.isIdle && bucket?.isFull(at: now) ?? true
    }

    mutating func acquire(_ load: String, at now: Instant) -> OriginAnswer {
        loads = loads.filter { now < $0.value }
        switch breaker.state(at: now) {
        case .closed, .halfOpen: break
        case .open(let end): return .resting(now.duration(to: end))
        case .probing:
            // Only the probe may contact the origin until its outcome is known.
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

    mutating func release(_ load: String, of url: String, _ outcome: OriginOutcome, at now: Instant) {
        loads[load] = nil
        if outcome == .notStarted { bucket?.giveBack() }
        breaker.record(CircuitBreaker.Outcome(outcome), of: url, isProbe: probe == load, at: now)
        if probe == load { probe = nil }
    }
}

extension OriginLimits {
    fileprivate var breaker: CircuitBreaker<String>.Policy {
        CircuitBreaker.Policy(
            failures: failures, samples: 2 * failures, keys: min(failingURLs, failures), window: window,
            openTime: Backoff(initial: rest, maximum: maximumCooldown))
    }
}

extension CircuitBreaker.Outcome {
    fileprivate init(_ outcome: OriginOutcome) {
        self =
            switch outcome {
            case .answered: .success
            case .failed: .failure
            case .unknown, .notStarted: .unknown
            }
    }
}

/// A limiter store for the loads of this process only, used while Redis is unavailable.
final class LocalOriginLimiterStore: OriginLimiterStore {
    private let limits: OriginLimits
    private let origins = Lock<[Origin: OriginCircuitBreaker]>([:])

    init(_ limits: OriginLimits) { self.limits = limits }

    func acquire(_ origin: Origin, load: String) -> OriginAnswer {
        origins.withLock { $0[origin, default: OriginCircuitBreaker(limits, at: .now)].acquire(load, at: .now) }
    }

    func release(_ origin: Origin, load: String, of url: String, _ outcome: OriginOutcome) {
        origins.withLock { origins in
            origins[origin]?.release(load, of: url, outcome, at: .now)
            if origins[origin]?.isIdle(at: .now) == true { origins[origin] = nil }
        }
    }

    func prolong(_ loads: [Origin: Set<String>]) {
        origins.withLock { origins in
            for (origin, names) in loads { origins[origin]?.prolong(names, at: .now) }
        }
    }
}

/// The origin of a source: scheme, host and port (RFC 6454). Limits apply to all loads of one origin in the cluster.
public struct Origin: Hashable, Sendable, CustomStringConvertible {
    /// The origin, such as `https://img.example.org:8443`. The scheme's default port is omitted.
    public let description: String

    /// Creates an origin from its text form.
    public init(_ name: String) { description = name }

    /// Creates the origin of a URL.
    public init(_ url: WebURL) {
        // The third slash begins the path, which a canonical URL always has.
        let parts = url.canonical.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false)
        let authority = parts[2].split(separator: "@", omittingEmptySubsequences: false).last ?? ""
        description = "\(parts[0])//\(authority)"
    }
}

/// Limits for the loads of one origin, which all workers share.
public struct OriginLimits: Hashable, Sendable {
    /// The maximum number of loads in flight.
    public var concurrency = 16
    /// The average number of loads per second; 0 for unlimited.
    public var rate = 0.0
    /// The capacity of the token bucket: loads that may start at once after an idle time, if there is a rate.
    public var burst = 16
    /// The number of failures that open the circuit breaker, if they are at least half of the last loads; 0 to disable
    /// the breaker. It considers the last `2 * failures` loads.
    public var failures = 8
    /// The minimum number of distinct URLs among these failures, so that retries of one bad URL do not affect the
    /// others. Capped at ``failures``.
    public var failingURLs = 3
    /// The age at which a load no longer counts.
    public var window = Duration.seconds(60)
    /// The time for which the breaker stays open. It doubles with each failed probe.
    public var rest = Duration.seconds(5)
    /// The maximum open time of the breaker.
    public var maximumCooldown = Duration.seconds(120)
    /// The lease of a load, renewed every third of it. A load whose lease expires no longer counts, because its worker
    /// has crashed.
    public var lease = Duration.seconds(10)

    /// Creates limits with default values.
    public init() {}
}

/// The decision about a load.
enum OriginAnswer: Hashable, Sendable {
    /// The load may start.
    case go
    /// The limits are reached. Ask again after this time.
    case wait(Duration)
    /// The circuit breaker is open for this time.
    case resting(Duration)
}

/// The outcome of a load, as far as the origin is concerned.
enum OriginOutcome: String, CaseIterable, Hashable, Sendable {
    /// The origin responded, possibly with an error such as 404.
    case answered
    /// The origin did not respond, or responded with a server error.
    case failed
    /// The outcome is unknown because the load was cancelled.
    case unknown
    /// The load was not started and does not count towards the rate.
    case notStarted
}

/// A store that counts the loads of origins.
protocol OriginLimiterStore: Sendable {
    /// Asks for permission to start a load.
    /// - Parameter load: A unique name of the load.
    func acquire(_ origin: Origin, load: String) async throws -> OriginAnswer
    /// Records the end of an admitted load.
    /// - Parameter url: An identifier of the URL that was loaded.
    func release(_ origin: Origin, load: String, of url: String, _ outcome: OriginOutcome) async throws
    /// Renews the leases of loads, which are grouped by origin. Expired leases stay expired.
    func prolong(_ loads: [Origin: Set<String>]) async throws
}
