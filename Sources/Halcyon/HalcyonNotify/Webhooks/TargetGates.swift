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
    /// How a request went, as far as its target is concerned.
    enum Outcome {
        case answered, failed, unknown
    }

    private struct Gate {
        let places: Slots
        /// Requests under way.
        var underWay = 0
        /// Requests that wait for a place.
        var waiting = 0
        var failuresInARow = 0
    }

    /// Targets without requests that are remembered for their failures.
    private static let mostIdle = 1000

    private let limits: TargetLimits
    private let gates = Lock<[Origin: Gate]>([:])

    init(_ limits: TargetLimits) { self.limits = limits }

    /// Waits until a request may begin. Whoever was let through says how it went with ``leave(_:_:)``.
    /// - Returns: false when the request is to be put off.
    /// - Throws: `CancellationError`.
    func enter(_ target: Origin) async throws -> Bool {
        let places: Slots? = gates.withLock { gates in
            var gate = gates[target] ?? Gate(places: Slots(limits.concurrency))
            guard mayBegin(gate), gate.waiting < limits.queue || gate.underWay < limits.concurrency else { return nil }
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
            let isIn = mayBegin(gate)
            if isIn { gate.underWay += 1 }
            return isIn
        }
        if isIn != true { places.release() }
        return isIn == true
    }

    /// A request has ended.
    func leave(_ target: Origin, _ outcome: Outcome) {
        let places = change(target) { gate in
            gate.underWay -= 1
            switch outcome {
            case .answered: gate.failuresInARow = 0
            case .failed: gate.failuresInARow += 1
            case .unknown: break
            }
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

    private func mayBegin(_ gate: Gate) -> Bool { gate.failuresInARow < limits.failures || gate.underWay == 0 }

    /// Forgets a target of which there is nothing to know, and others when there are too many.
    private func forget(_ target: Origin, _ gates: inout [Origin: Gate]) {
        func isIdle(_ gate: Gate) -> Bool { gate.underWay == 0 && gate.waiting == 0 }
        guard let gate = gates[target], isIdle(gate) else { return }
        if gate.failuresInARow == 0 {
            gates[target] = nil
        } else if gates.count > Self.mostIdle {
            gates = gates.filter { !isIdle($0.value) }
        }
    }
}
