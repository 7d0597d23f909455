import Telemetry
import Threads

/// Looks once a second, on a thread of its own, whether the worker gets on; says once when it is stuck and once when it moves again.
final class HealthWatch: Sendable {
    private struct State {
        var liveness = Liveness()
        var progress: Progress
        /// Whether a task was begun to see when it has its turn.
        var isTurnAwaited = false
        var isClosed = false
    }

    private let options: HealthOptions
    private let log: Log
    private let gauges: (stuck: Gauge, jobs: Gauge)
    private let alarms = Alarms(name: "health")
    private let whenHopeless: @Sendable () -> Void
    private let state = Lock(State(progress: Progress(since: .now)))

    /// - Parameter whenHopeless: called when the worker has been stuck for as long as it may.
    init(_ options: HealthOptions, log: Log, metrics: Metrics, whenHopeless: @escaping @Sendable () -> Void) {
        self.options = options
        self.log = log
        self.whenHopeless = whenHopeless
        gauges = (
            metrics.gauge("halcyon_stuck", help: "1 while the worker does not get on, else 0."),
            metrics.gauge(
                "halcyon_jobs_under_way", help: "Jobs that were taken and have neither ended nor been handed back.")
        )
    }

    /// Begins to look.
    /// - Parameter add: sets what others know: when records were last looked for, and the limit of renderings.
    func start(_ add: @escaping @Sendable (inout Progress) -> Void) {
        let isClosed = state.withLock { $0.isClosed }
        if isClosed { return }
        _ = alarms.set(at: .now + options.interval) { [weak self] in
            self?.look(add)
            self?.start(add)
        }
    }

    /// Looks no more: a worker that leaves has a limit of its own.
    func close() { state.withLock { $0.isClosed = true } }

    /// A job was taken.
    func took() {
        gauges.jobs.add(1)
        state.withLock { $0.progress.jobs += 1 }
    }

    /// It has ended, or was handed back.
    func ended() {
        gauges.jobs.add(-1)
        state.withLock { state in
            state.progress.jobs -= 1
            state.progress.lastEnd = .now
        }
    }

    /// What it saw last.
    var seen: (liveness: Liveness, progress: Progress) { state.withLock { ($0.liveness, $0.progress) } }

    private func look(_ add: (inout Progress) -> Void) {
        var others = seen.progress
        add(&others)
        let (news, jobs, mustAsk) = state.withLock { state in
            if state.isClosed { return (nil as Liveness.News?, 0, false) }
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
            log.error("the worker is stuck", ["why": text(obstacles), "jobs": jobs])
        case .moves(let after):
            gauges.stuck.set(0)
            log.notice("the worker moves again", ["after": after])
        case .hopeless(let obstacles):
            log.error(
                "the worker ends itself: it does not get on, and whoever started it is to start it anew",
                ["why": text(obstacles), "jobs": jobs])
            whenHopeless()
        case nil: break
        }
    }

    private func tookItsTurn() {
        state.withLock { state in
            state.isTurnAwaited = false
            state.progress.lastTurn = .now
        }
    }

    private func text(_ obstacles: [Progress.Obstacle]) -> String {
        obstacles.map(\.description).joined(separator: "; ")
    }
}

/// Whether a worker gets on, as is seen by looking at its ``Progress`` again and again. A pure value.
public struct Liveness: Hashable, Sendable {
    /// What a look has brought to light.
    enum News: Hashable {
        /// It is stuck, since now.
        case stuck([Progress.Obstacle])
        /// It gets on again, after so long.
        case moves(Duration)
        /// It has been stuck for longer than it may.
        case hopeless([Progress.Obstacle])
    }

    /// Since when it has been seen to be stuck; nil while it gets on.
    public private(set) var stuckSince: Progress.Moment?
    private var lastLook: Progress.Moment?

    /// Whether it is stuck: then it is better begun anew.
    public var isStuck: Bool { stuckSince != nil }

    /// Nobody has looked yet.
    init() {}

    /// Looks once more.
    ///
    /// A process that stood still altogether finds everything late when it goes on: such a look says nothing.
    mutating func look(at progress: Progress, _ now: Progress.Moment, _ options: HealthOptions) -> News? {
        defer { lastLook = now }
        if let lastLook, lastLook.duration(to: now) > options.interval * 2 + .seconds(1) { return nil }
        let obstacles = progress.obstacles(at: now, patience: options.patience)
        guard let since = stuckSince else {
            if obstacles.isEmpty { return nil }
            stuckSince = now
            return .stuck(obstacles)
        }
        if obstacles.isEmpty {
            stuckSince = nil
            return .moves(since.duration(to: now))
        }
        guard let limit = options.stuckLimit, since.duration(to: now) >= limit else { return nil }
        return .hopeless(obstacles)
    }
}

/// When a worker counts as stuck, and what then.
public struct HealthOptions: Hashable, Sendable {
    /// For how long something may be late until the worker counts as stuck.
    public var patience = Duration.seconds(30)
    /// How long it may be stuck until it ends itself; nil for ever.
    public var stuckLimit: Duration? = .seconds(60)

    /// The defaults.
    public init() {}

    /// How often it is looked.
    var interval: Duration { min(.seconds(1), patience / 4) }
}
