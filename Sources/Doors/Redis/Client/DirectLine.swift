import Threads

/// The service of a client that talks to one server: the one that there is, or the master that sentinels name.
final class DirectLine: CallService {
    private let session: Session<CommandQueue>

    init(
        _ guide: any Guide, followsMaster: Bool, _ settings: RedisSettings, on loop: EventLoop,
        onStateChange: @escaping @Sendable (RedisState) -> Void
    ) {
        let watcher = followsMaster ? MasterWatcher() : nil
        session = Session(
            CommandQueue(settings, on: loop, under: watcher), with: guide, settings, on: loop,
            onStateChange: onStateChange)
        watcher?.session = session
    }

    func open() { session.connect() }
    func accept(_ call: Call, _ now: ContinuousClock.Instant) { session.talk.accept(call, now) }
    func flush(_ now: ContinuousClock.Instant) { session.talk.flush(now) }
    func close() { session.close() }
    var masters: [RedisAddress] { session.server.map { [$0.address] } ?? [] }
}

/// Looks for another master when the one that sentinels named says that it is none any more.
private final class MasterWatcher: Overseer {
    weak var session: Session<CommandQueue>?

    func opened() {}
    func lost(_ error: RedisError) {}

    func takesOver(_ call: Call, insteadOf outcome: Call.Outcome) -> Bool {
        let isReadOnly =
            switch outcome {
            case .failure(let error): error.isReadOnly
            case .success(.array(let replies)):
                replies.contains { if case .error(let error) = $0 { error.isReadOnly } else { false } }
            case .success: false
            }
        if isReadOnly {
            // The caller's own answer comes first: nothing of it has run.
            call.answer(outcome)
            session?.startAnew(RedisError(.unavailable, "the master is a replica now"))
        }
        return isReadOnly
    }
}

extension RedisError {
    fileprivate var isReadOnly: Bool { code == .server("READONLY") }
}
