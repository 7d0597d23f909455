import Concurrency
import Telemetry

/// Checks once a second, on its own thread, whether the worker makes progress. Logs once when it is stuck and once when
/// it recovers.
final class Watchdog: Sendable {
    private struct State {
        var liveness = WatchdogState()
        var progress: HealthSnapshot
        /// True if a task has been started to check the thread pool and has not run yet.
        var isTurnAwaited = false
        var isClosed = false
    }

    private let options: HealthOptions
    private let log: Log
    private let gauges: (stuck: Gauge, jobs: Gauge)
    private let timers = TimerThread(name: "health")
    private let onStuck: @Sendable () -> Void
    private let state = Lock(State(progress: HealthSnapshot(since: .now)))

    /// - Parameter onStuck: A callback for a worker that has been stuck for ``HealthOptions/exitAfter``.
    init(_ options: HealthOptions, log: Log, metrics: Metrics, onStuck: @escaping @Sendable () -> Void) {
        self.options = options
        self.log = log
        self.onStuck = onStuck
        gauges = (
            metrics.gauge("halcyon_stuck", help: "1 while the worker is stuck, otherwise 0."),
            metrics.gauge(
                "halcyon_jobs_in_flight", help: "Jobs in flight, which have neither ended nor been returned.")
        )
    }

    /// Starts the checks.
    /// - Parameter add: A closure that adds what other components know: the last poll and the deadline of renderings.
    func start(_ add: @escaping @Sendable (inout HealthSnapshot) -> Void) {
        let isClosed = state.withLock { $0.isClosed }
        if isClosed { return }
        _ = timers.set(at: .now + options.interval) { [weak self] in
            self?.look(add)
            self?.start(add)
        }
    }

    /// Stops the checks. A shutdown has its own time limit.
    func close() { state.withLock { $0.isClosed = true } }

    /// Counts a job that was received.
    func jobStarted() {
        gauges.jobs.add(1)
        state.withLock { $0.progress.jobs += 1 }
    }

    /// Removes a job that ended or was returned to the queue from the count.
    func jobFinished() {
        gauges.jobs.add(-1)
        state.withLock { $0.progress.jobs -= 1 }
    }

    /// The result of the last check.
    var seen: (liveness: WatchdogState, progress: HealthSnapshot) { state.withLock { ($0.liveness, $0.progress) } }

    private func look(_ add: (inout HealthSnapshot) -> Void) {
        var others = seen.progress
        add(&others)
        let (news, jobs, mustAsk) = state.withLock { state in
            if state.isClosed { return (nil as WatchdogState.WatchdogEvent?, 0, false) }
            state.progress.lastPoll = others.lastPoll
            state.progress.renderLimit = others.renderLimit
            state.progress.refusedSince = others.refusedSince
            let news = state.liveness.look(at: state.progress, .now, options)
            defer { state.isTurnAwaited = true }
            return (news, state.progress.jobs, !state.isTurnAwaited)
        }
        if mustAsk { Task { tookItsTurn() } }
        switch news {
        case .stuck(let obstacles):
            gauges.stuck.set(1)
            log.error("worker is stuck", ["why": text(obstacles), "jobs": jobs])
        case .moves(let after):
            gauges.stuck.set(0)
            log.notice("worker recovered", ["after": after])
        case .hopeless(let obstacles):
            log.error(
                "worker is stuck, exiting with code 70 so that its supervisor restarts it",
                ["why": text(obstacles), "jobs": jobs])
            onStuck()
        case nil: break
        }
    }

    private func tookItsTurn() {
        state.withLock { state in
            state.isTurnAwaited = false
            state.progress.lastTurn = .now
        }
    }

    private func text(_ obstacles: [HealthSnapshot.StuckReason]) -> String {
        obstacles.map(\.description).joined(separator: "; ")
    }
}

/// The state machine of the watchdog, which is fed one ``HealthSnapshot`` after another. A pure value.
public struct WatchdogState: Hashable, Sendable {
    /// The result of a check, if the state changed.
    enum WatchdogEvent: Hashable {
        /// The worker has become stuck.
        case stuck([HealthSnapshot.StuckReason])
        /// The worker has recovered after this time.
        case moves(Duration)
        /// The worker has been stuck for longer than ``HealthOptions/exitAfter``.
        case hopeless([HealthSnapshot.StuckReason])
    }

    /// The time since which the worker has been stuck. Nil while it makes progress.
    public private(set) var stuckSince: HealthSnapshot.Moment?
    private var lastLook: HealthSnapshot.Moment?

    /// True if the worker is stuck and should be restarted.
    public var isStuck: Bool { stuckSince != nil }

    /// Creates the state before the first check.
    init() {}

    /// Evaluates a snapshot.
    ///
    /// A process that was suspended as a whole finds everything late when it resumes. Such a check is ignored.
    mutating func look(at progress: HealthSnapshot, _ now: HealthSnapshot.Moment, _ options: HealthOptions)
        -> WatchdogEvent?
    {
        defer { lastLook = now }
        if let lastLook, lastLook.duration(to: now) > options.interval * 2 + .seconds(1) { return nil }
        let obstacles = progress.obstacles(at: now, stuckAfter: options.stuckAfter)
        guard let since = stuckSince else {
            if obstacles.isEmpty { return nil }
            stuckSince = now
            return .stuck(obstacles)
        }
        if obstacles.isEmpty {
            stuckSince = nil
            return .moves(since.duration(to: now))
        }
        guard let limit = options.exitAfter, since.duration(to: now) >= limit else { return nil }
        return .hopeless(obstacles)
    }
}

/// The limits for detecting a stuck worker, and the reaction to it.
public struct HealthOptions: Hashable, Sendable {
    /// The time that an operation may be late before the worker counts as stuck.
    public var stuckAfter = Duration.seconds(30)
    /// The time that a worker may be stuck before it exits. Nil means that it never exits.
    public var exitAfter: Duration? = .seconds(60)

    /// Creates the default options.
    public init() {}

    /// The interval between two checks.
    var interval: Duration { min(.seconds(1), stuckAfter / 4) }
}
