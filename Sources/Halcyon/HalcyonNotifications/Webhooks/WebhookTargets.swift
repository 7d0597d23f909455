import Concurrency
import HalcyonModel
import HalcyonSources

/// The allowed webhook targets and their secrets.
public struct WebhookTargets: Sendable {
    /// The endpoint of a webhook.
    public struct Endpoint: Sendable {
        /// The URL.
        public let url: WebURL
        /// The signing secrets. Each produces a signature. There are two while a secret is being replaced.
        public let secrets: [WebhookSecret]
        /// True if the operator configured the URL. The address then need not be public.
        public let isTrusted: Bool
    }

    private let named: [String: Endpoint]
    private let allowed: [HostPattern]
    private let secrets: [WebhookSecret]

    /// - Parameters:
    ///   - urls: The configured URLs by name.
    ///   - secretsByName: The secrets of named webhooks that have separate ones.
    ///   - secrets: The secrets of all other webhooks.
    ///   - allow: The hosts (`hooks.example.org`, `*.example.org`) that jobs may name in URLs.
    public init(
        urls: [String: WebURL] = [:], secretsByName: [String: [WebhookSecret]] = [:], secrets: [WebhookSecret] = [],
        allow: [HostPattern] = []
    ) {
        named = Dictionary(
            uniqueKeysWithValues: urls.map { name, url in
                (name, Endpoint(url: url, secrets: secretsByName[name] ?? secrets, isTrusted: true))
            })
        allowed = allow
        self.secrets = secrets
    }

    /// True if no target is allowed.
    public var isEmpty: Bool { named.isEmpty && allowed.isEmpty }

    /// Returns the endpoint of a job's webhook.
    /// - Throws: ``JobError`` `invalid_job` if the target is not allowed or has no secret.
    public func endpoint(of webhook: Webhook) throws(JobError) -> Endpoint {
        let endpoint: Endpoint
        switch webhook {
        case .name(let name):
            guard let found = named[name] else {
                throw JobError(.invalidJob, "no webhook has the name \(name); names are defined in webhooks.urls")
            }
            endpoint = found
        case .url(let url):
            guard allowed.contains(where: { $0.matches(url.host) }) else {
                throw JobError(
                    .invalidJob, "jobs may not name the host \(url.host); allowed hosts are listed in webhooks.allow")
            }
            endpoint = Endpoint(url: url, secrets: secrets, isTrusted: false)
        }
        guard !endpoint.secrets.isEmpty else {
            throw JobError(.invalidJob, "the webhook has no signing secret; set webhooks.secret")
        }
        return endpoint
    }
}

/// The limits that protect webhook targets. They apply to each process separately.
public struct TargetLimits: Hashable, Sendable {
    /// The maximum number of concurrent requests to one target.
    public var concurrency = 8
    /// The maximum number of requests that wait for a target. Further ones are postponed.
    public var queue = 256
    /// The number of consecutive failures after which the circuit breaker of a target opens. One request at a time then
    /// probes the target.
    public var failures = 5

    /// Creates the default options.
    public init() {}
}

/// Limits the requests to each target, so that a target that is slow or down does not delay others.
final class WebhookCircuitBreakers: Sendable {
    /// The circuit breaker of a target. It does not distinguish between requests to the same target.
    typealias Breaker = CircuitBreaker<Origin>

    private struct TargetBreaker {
        let permits: PrioritySemaphore
        /// The number of requests in flight.
        private(set) var inFlight = 0
        /// The number of requests that wait for a permit.
        var waiting = 0
        private var breaker: Breaker

        init(_ limits: TargetLimits, _ policy: Breaker.Policy) {
            permits = PrioritySemaphore(limits.concurrency)
            breaker = Breaker(policy)
        }

        /// True if the entry holds no information and can be removed.
        var isNew: Bool { breaker.isIdle }

        func mayBegin(at now: ContinuousClock.Instant) -> Bool {
            switch breaker.state(at: now) {
            case .closed: true
            case .halfOpen: inFlight == 0
            case .open, .probing: false
            }
        }

        mutating func begin(at now: ContinuousClock.Instant) {
            inFlight += 1
            _ = breaker.beginProbe(at: now)
        }

        mutating func end(_ outcome: Breaker.Outcome, of target: Origin, at now: ContinuousClock.Instant) {
            inFlight -= 1
            // A request that started before the breaker opened says as much about the target as the probe, which starts
            // after the request has ended.
            breaker.record(outcome, of: target, isProbe: true, at: now)
        }
    }

    /// The maximum number of targets without requests that are remembered because of their failures.
    private static let mostIdle = 1000

    private let limits: TargetLimits
    private let policy: Breaker.Policy
    private let breakers = Lock<[Origin: TargetBreaker]>([:])

    init(_ limits: TargetLimits) {
        self.limits = limits
        // The probe may start at once.
        policy = Breaker.Policy(failures: limits.failures, openTime: Backoff(initial: .zero, maximum: .zero))
    }

    /// Waits until a request may start. A caller that is admitted must report the outcome with ``release(_:_:)``.
    /// - Returns: False if the request is to be postponed.
    /// - Throws: `CancellationError` if the task is cancelled.
    func acquire(_ target: Origin) async throws -> Bool {
        let permits: PrioritySemaphore? = breakers.withLock { breakers in
            var entry = breakers[target] ?? TargetBreaker(limits, policy)
            guard entry.mayBegin(at: .now), entry.waiting < limits.queue || entry.inFlight < limits.concurrency else {
                return nil
            }
            entry.waiting += 1
            breakers[target] = entry
            return entry.permits
        }
        guard let permits else { return false }
        do {
            try await permits.acquire()
        } catch {
            change(target) { $0.waiting -= 1 }
            throw error
        }
        let isIn = change(target) { entry in
            entry.waiting -= 1
            // Other requests may have failed in the meantime.
            let isIn = entry.mayBegin(at: .now)
            if isIn { entry.begin(at: .now) }
            return isIn
        }
        if isIn != true { permits.release() }
        return isIn == true
    }

    /// Records the outcome of a request and releases its permit.
    func release(_ target: Origin, _ outcome: Breaker.Outcome) {
        let permits = change(target) { entry in
            entry.end(outcome, of: target, at: .now)
            return entry.permits
        }
        permits?.release()
    }

    /// Changes the entry of a target that has requests, and removes it if it holds no information afterwards.
    @discardableResult
    private func change<Result>(_ target: Origin, _ body: (inout TargetBreaker) -> Result) -> Result? {
        breakers.withLock { breakers in
            guard var entry = breakers[target] else { return nil }
            let result = body(&entry)
            breakers[target] = entry
            forget(target, &breakers)
            return result
        }
    }

    /// Removes the entry of a target that holds no information. Removes all idle entries if there are too many.
    private func forget(_ target: Origin, _ breakers: inout [Origin: TargetBreaker]) {
        func isIdle(_ entry: TargetBreaker) -> Bool { entry.inFlight == 0 && entry.waiting == 0 }
        guard let entry = breakers[target], isIdle(entry) else { return }
        if entry.isNew {
            breakers[target] = nil
        } else if breakers.count > Self.mostIdle {
            breakers = breakers.filter { !isIdle($0.value) }
        }
    }
}
