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
