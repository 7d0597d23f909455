import HalcyonSources
import Threads

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
