import Redis
import Threads

/// Who in this process is told when a lease of another one ends.
///
/// There is one channel for the process and one subscription, however many leases are waited for. What is published while the
/// connection is away is missed: nobody may rely on being woken.
final class Wakeups: Sendable {
    private struct State {
        var watches: [String: [ObjectIdentifier: Watch]] = [:]
        var raises: [String: @Sendable (Int) -> Void] = [:]
        var listening: Task<Void, Never>?
    }

    private let state = Lock(State())

    /// Begins to listen; the subscriber is somebody else's, who closes it after ``close()``.
    func listen(to channel: String, _ subscriber: RedisSubscriber, whenDown rest: Duration) {
        let task = Task { [weak self] in
            await subscriber.follow(channel, keeping: 10_000, whenDown: rest) { self?.received($0.payload) }
        }
        state.withLock { $0.listening = task }
    }

    func close() async {
        let task = state.withLock { $0.listening }
        task?.cancel()
        await task?.value
    }

    func received(_ payload: [UInt8]) {
        switch LeaseMessage(payload) {
        case .ended(let lease, let fence, let outcome):
            let watches = state.withLock { $0.watches[lease].map { Array($0.values) } ?? [] }
            for watch in watches { watch.wake(LeaseHint(lease: lease, fence: fence, outcome: outcome)) }
        case .raise(let lease, let level):
            state.withLock { $0.raises[lease] }?(level)
        case nil: break
        }
    }

    /// Watches leases from now on, until ``Watch/end()``.
    func watch(_ names: [LeaseName]) -> Watch {
        let watch = Watch(names.map(\.lease)) { [weak self] in self?.forget($0) }
        state.withLock { state in
            for lease in watch.leases { state.watches[lease, default: [:]][ObjectIdentifier(watch)] = watch }
        }
        return watch
    }

    private func forget(_ watch: Watch) {
        state.withLock { state in
            for lease in watch.leases {
                state.watches[lease]?[ObjectIdentifier(watch)] = nil
                if state.watches[lease]?.isEmpty == true { state.watches[lease] = nil }
            }
        }
    }

    /// Tells of rises while a lease is held.
    func onRaise(of lease: Lease, _ body: (@Sendable (Int) -> Void)?) {
        state.withLock { $0.raises[lease.name.lease] = body }
    }
}

/// That a lease has ended.
struct LeaseHint: Hashable, Sendable {
    let lease: String
    let fence: Int
    let outcome: LeaseOutcome
}

/// Keeps what has been heard of some leases until it is asked for, so that nothing is missed between asking for a lease and waiting.
final class Watch: Sendable {
    private struct State {
        var heard: [LeaseHint] = []
        var sleeper: CheckedContinuation<Void, Never>?
        var number = 0

        mutating func takeSleeper() -> CheckedContinuation<Void, Never>? {
            defer { sleeper = nil }
            return sleeper
        }
    }

    let leases: [String]
    private let state = Lock(State())
    private let onEnd: @Sendable (Watch) -> Void

    init(_ leases: [String], onEnd: @escaping @Sendable (Watch) -> Void) {
        self.leases = leases
        self.onEnd = onEnd
    }

    func wake(_ hint: LeaseHint) {
        let sleeper = state.withLock { state in
            state.heard.append(hint)
            return state.takeSleeper()
        }
        sleeper?.resume()
    }

    /// Waits until something is heard, at most for `limit`, and gives all that was.
    /// - Throws: `CancellationError`.
    func next(atMost limit: Duration) async throws -> [LeaseHint] {
        let number = state.withLock { state in
            state.number += 1
            return state.number
        }
        let timer = Task {
            await Task.sleepUnlessCancelled(for: limit)
            giveUp(number)
        }
        defer { timer.cancel() }
        await withCancellableContinuation { continuation in
            let mayGoOn = state.withLock { state in
                guard state.heard.isEmpty, state.number == number else { return true }
                state.sleeper = continuation
                return false
            }
            if mayGoOn { continuation.resume() }
        } onCancel: {
            giveUp(number)
        }
        try Task.checkCancellation()
        return state.withLock { state in
            defer { state.heard = [] }
            return state.heard
        }
    }

    /// Ends a wait, also one that has not quite begun.
    private func giveUp(_ number: Int) {
        let sleeper = state.withLock { state -> CheckedContinuation<Void, Never>? in
            guard state.number == number else { return nil }
            state.number += 1
            return state.takeSleeper()
        }
        sleeper?.resume()
    }

    func end() { onEnd(self) }
}
