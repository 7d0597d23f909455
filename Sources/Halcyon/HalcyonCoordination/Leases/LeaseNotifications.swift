import Concurrency
import Redis

/// Notifies waiters in this process of the ends of leases in other processes.
///
/// The process has one channel and one subscription, regardless of the number of leases that it waits for. Messages
/// that are published while the connection is down are lost, so waiters must not rely on notifications.
final class LeaseNotifications: Sendable {
    private struct State {
        var watches: [String: [ObjectIdentifier: LeaseWaiter]] = [:]
        var raises: [String: @Sendable (Int) -> Void] = [:]
        var listening: Task<Void, Never>?
    }

    private let state = Lock(State())

    /// Starts to listen. The caller owns the subscriber and closes it after ``close()``.
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
        case .escalate(let lease, let level):
            state.withLock { $0.raises[lease] }?(level)
        case nil: break
        }
    }

    /// Watches leases until ``LeaseWaiter/end()``.
    func watch(_ names: [LeaseName]) -> LeaseWaiter {
        let watch = LeaseWaiter(names.map(\.lease)) { [weak self] in self?.forget($0) }
        state.withLock { state in
            for lease in watch.leases { state.watches[lease, default: [:]][ObjectIdentifier(watch)] = watch }
        }
        return watch
    }

    private func forget(_ watch: LeaseWaiter) {
        state.withLock { state in
            for lease in watch.leases {
                state.watches[lease]?[ObjectIdentifier(watch)] = nil
                if state.watches[lease]?.isEmpty == true { state.watches[lease] = nil }
            }
        }
    }

    /// Sets the callback for priority escalations of a held lease.
    func onRaise(of lease: Lease, _ body: (@Sendable (Int) -> Void)?) {
        state.withLock { $0.raises[lease.name.lease] = body }
    }
}

/// A notification that a lease has ended.
struct LeaseHint: Hashable, Sendable {
    let lease: String
    let fence: Int
    let outcome: LeaseOutcome
}

/// Buffers notifications about some leases, so that none is missed between an attempt to acquire them and the wait.
final class LeaseWaiter: Sendable {
    private struct State {
        var heard: [LeaseHint] = []
        var sleeper: CheckedContinuation<Void, Never>?
        var number = 0

        mutating func removeContinuation() -> CheckedContinuation<Void, Never>? {
            defer { sleeper = nil }
            return sleeper
        }
    }

    let leases: [String]
    private let state = Lock(State())
    private let onEnd: @Sendable (LeaseWaiter) -> Void

    init(_ leases: [String], onEnd: @escaping @Sendable (LeaseWaiter) -> Void) {
        self.leases = leases
        self.onEnd = onEnd
    }

    func wake(_ hint: LeaseHint) {
        let sleeper = state.withLock { state in
            state.heard.append(hint)
            return state.removeContinuation()
        }
        sleeper?.resume()
    }

    /// Waits up to `limit` for a notification, and returns all buffered ones.
    /// - Throws: `CancellationError`.
    func next(withTimeout limit: Duration) async throws -> [LeaseHint] {
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

    /// Ends a wait, even one that is just about to begin.
    private func giveUp(_ number: Int) {
        let sleeper = state.withLock { state -> CheckedContinuation<Void, Never>? in
            guard state.number == number else { return nil }
            state.number += 1
            return state.removeContinuation()
        }
        sleeper?.resume()
    }

    func end() { onEnd(self) }
}
