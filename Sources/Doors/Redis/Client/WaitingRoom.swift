import Threads

/// Calls that wait for a connection: for as long as the outage's grace lasts.
final class WaitingRoom {
    private let loop: EventLoop
    private var calls: [Call] = []
    private var outage: Outage

    init(_ settings: RedisSettings, on loop: EventLoop) {
        self.loop = loop
        outage = Outage(grace: settings.outageGrace, connecting: settings.connectTimeout)
    }

    /// Lets a call wait, or fails it when the grace is over.
    func admit(_ call: Call, _ now: ContinuousClock.Instant) {
        guard now < outage.graceEnd else { return call.answer(.failure(outage.error)) }
        calls.append(call)
        // Not taken back when a connection comes: then it finds nothing to do.
        if calls.count == 1 { lookAgain(after: now.duration(to: outage.graceEnd)) }
    }

    /// There is still, or again, no connection.
    func note(_ reason: RedisError, hadConnection: Bool) {
        outage.note(reason, hadConnection: hadConnection)
        if ContinuousClock.now >= outage.graceEnd { endWait() }
    }

    /// Whether nobody waits.
    var isEmpty: Bool { calls.isEmpty }

    /// Takes all calls out.
    func takeAll() -> [Call] {
        defer { calls = [] }
        return calls
    }

    /// Takes those out that may go elsewhere: all that name no node.
    func takeMovable() -> [Call] {
        defer { calls.removeAll { $0.node == nil } }
        return calls.filter { $0.node == nil }
    }

    private func lookAgain(after delay: Duration) {
        loop.schedule(after: delay) { [weak self] in
            guard let self, !calls.isEmpty else { return }
            let left = ContinuousClock.now.duration(to: outage.graceEnd)
            // A loss may have made it longer.
            if left > .zero { lookAgain(after: left) } else { endWait() }
        }
    }

    private func endWait() {
        for call in takeAll() { call.answer(.failure(outage.error)) }
    }
}
