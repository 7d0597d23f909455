import Threads

/// A sign of life of a connection that hears messages. A channel may be quiet for days, so silence alone proves nothing: a PING must be
/// answered.
final class Pulse {
    private let settings: RedisSettings
    private let loop: EventLoop
    private var connection: Connection?
    private var timer: EventLoop.Timer?

    init(_ settings: RedisSettings, on loop: EventLoop) {
        self.settings = settings
        self.loop = loop
    }

    /// Looks after a fresh connection.
    func begin(_ connection: Connection) {
        self.connection = connection
        takeLater(after: settings.idlePing)
    }

    /// The connection is gone.
    func end() {
        connection = nil
        set(nil)
    }

    private func set(_ new: EventLoop.Timer?) {
        if let timer { loop.cancel(timer) }
        timer = new
    }

    private func takeLater(after delay: Duration) {
        set(loop.schedule(after: delay) { [weak self] in self?.take() })
    }

    private func take() {
        guard let connection else { return }
        let now = ContinuousClock.now
        let quiet = connection.lastHeard.duration(to: now)
        guard quiet >= settings.idlePing else { return takeLater(after: settings.idlePing - quiet) }
        connection.send(["PING"])
        connection.flush()
        set(
            loop.schedule(after: settings.commandTimeout) { [weak self] in
                guard let self, let connection = self.connection else { return }
                if connection.lastHeard > now { return takeLater(after: settings.idlePing) }
                connection.fail(RedisError(.timeout, "the server was silent for \(settings.commandTimeout)"))
            })
    }
}
