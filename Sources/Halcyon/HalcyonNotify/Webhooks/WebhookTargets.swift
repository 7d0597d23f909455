import HalcyonModel
import HalcyonSources
import Threads

/// Who may be told of jobs by HTTP, and how that is signed.
public struct WebhookTargets: Sendable {
    /// Where one goes.
    public struct Endpoint: Sendable {
        /// The address.
        public let url: WebURL
        /// Each makes a signature: two of them while one takes the place of the other.
        public let secrets: [WebhookSecret]
        /// Whether the operator named the address, so that it need not be public.
        public let isTrusted: Bool
    }

    private let named: [String: Endpoint]
    private let allowed: [HostPattern]
    private let secrets: [WebhookSecret]

    /// - Parameters:
    ///   - urls: the operator's own, by their names.
    ///   - secretsByName: of those that are signed with secrets of their own.
    ///   - secrets: of all others.
    ///   - allow: hosts (`hooks.example.org`, `*.example.org`) that jobs may name in URLs.
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

    /// Whether nobody may be told.
    public var isEmpty: Bool { named.isEmpty && allowed.isEmpty }

    /// Where a job's webhook goes.
    /// - Throws: ``Failure`` `invalid_job` for one that may not be told, or not signed.
    public func endpoint(of webhook: Webhook) throws(Failure) -> Endpoint {
        let endpoint: Endpoint
        switch webhook {
        case .name(let name):
            guard let found = named[name] else {
                throw Failure(.invalidJob, "no webhook has the name \(name); webhooks.urls gives names")
            }
            endpoint = found
        case .url(let url):
            guard allowed.contains(where: { $0.matches(url.host) }) else {
                throw Failure(
                    .invalidJob, "jobs may not name the host \(url.host); webhooks.allow says which ones they may")
            }
            endpoint = Endpoint(url: url, secrets: secrets, isTrusted: false)
        }
        guard !endpoint.secrets.isEmpty else {
            throw Failure(.invalidJob, "there is no secret to sign it with; webhooks.secret has it")
        }
        return endpoint
    }
}

/// How the targets of webhooks are spared, by each process for itself.
public struct TargetLimits: Hashable, Sendable {
    /// Requests to one target at once.
    public var concurrency = 8
    /// How many more may wait for that; others are put off.
    public var queue = 256
    /// Failures in a row after which a target counts as down: then one request at a time finds out whether it still is.
    public var failures = 5

    /// The defaults.
    public init() {}
}

/// Lets requests to a target begin when it can take them, so that a target that is slow or down holds up no other.
final class TargetGates: Sendable {
    /// A target is one thing: it does not matter what is asked of it.
    typealias Breaker = CircuitBreaker<Origin>

    private struct Gate {
        let places: Slots
        /// Requests under way.
        private(set) var underWay = 0
        /// Requests that wait for a place.
        var waiting = 0
        private var breaker: Breaker

        init(_ limits: TargetLimits, _ policy: Breaker.Policy) {
            places = Slots(limits.concurrency)
            breaker = Breaker(policy)
        }

        /// Whether nothing is lost by forgetting it.
        var isNew: Bool { breaker.isIdle }

        func mayBegin(at now: ContinuousClock.Instant) -> Bool {
            switch breaker.state(at: now) {
            case .closed: true
            case .halfOpen: underWay == 0
            case .open, .probing: false
            }
        }

        mutating func begin(at now: ContinuousClock.Instant) {
            underWay += 1
            _ = breaker.beginProbe(at: now)
        }

        mutating func end(_ outcome: Breaker.Outcome, of target: Origin, at now: ContinuousClock.Instant) {
            underWay -= 1
            // What began before the breaker opened tells as much of the target as the probe, which begins when it has
            // ended.
            breaker.record(outcome, of: target, isProbe: true, at: now)
        }
    }

    /// Targets without requests that are remembered for their failures.
    private static let mostIdle = 1000

    private let limits: TargetLimits
    private let policy: Breaker.Policy
    private let gates = Lock<[Origin: Gate]>([:])

    init(_ limits: TargetLimits) {
        self.limits = limits
        // The probe may begin at once.
        policy = Breaker.Policy(failures: limits.failures, openTime: Backoff(initial: .zero, maximum: .zero))
    }

    /// Waits until a request may begin. Whoever was let through says how it went with ``leave(_:_:)``.
    /// - Returns: false when the request is to be put off.
    /// - Throws: `CancellationError`.
    func enter(_ target: Origin) async throws -> Bool {
        let places: Slots? = gates.withLock { gates in
            var gate = gates[target] ?? Gate(limits, policy)
            guard gate.mayBegin(at: .now), gate.waiting < limits.queue || gate.underWay < limits.concurrency else {
                return nil
            }
            gate.waiting += 1
            gates[target] = gate
            return gate.places
        }
        guard let places else { return false }
        do {
            try await places.acquire()
        } catch {
            change(target) { $0.waiting -= 1 }
            throw error
        }
        let isIn = change(target) { gate in
            gate.waiting -= 1
            // Others may have failed meanwhile.
            let isIn = gate.mayBegin(at: .now)
            if isIn { gate.begin(at: .now) }
            return isIn
        }
        if isIn != true { places.release() }
        return isIn == true
    }

    /// A request has ended.
    func leave(_ target: Origin, _ outcome: Breaker.Outcome) {
        let places = change(target) { gate in
            gate.end(outcome, of: target, at: .now)
            return gate.places
        }
        places?.release()
    }

    /// Changes what is known of a target that has requests, and forgets it when there is nothing left to know.
    @discardableResult
    private func change<Result>(_ target: Origin, _ body: (inout Gate) -> Result) -> Result? {
        gates.withLock { gates in
            guard var gate = gates[target] else { return nil }
            let result = body(&gate)
            gates[target] = gate
            forget(target, &gates)
            return result
        }
    }

    /// Forgets a target of which there is nothing to know, and others when there are too many.
    private func forget(_ target: Origin, _ gates: inout [Origin: Gate]) {
        func isIdle(_ gate: Gate) -> Bool { gate.underWay == 0 && gate.waiting == 0 }
        guard let gate = gates[target], isIdle(gate) else { return }
        if gate.isNew {
            gates[target] = nil
        } else if gates.count > Self.mostIdle {
            gates = gates.filter { !isIdle($0.value) }
        }
    }
}
