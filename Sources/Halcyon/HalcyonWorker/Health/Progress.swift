/// What a worker is at, and when it last gave each sign that it gets on. A pure value.
///
/// Waiting is no standstill, neither for a server that is away nor for an origin: what waits has no time limit of the worker's own. What
/// has one, and goes on long after it, hinders.
public struct Progress: Hashable, Sendable {
    /// A moment by the clock that time limits are kept with.
    public typealias Moment = ContinuousClock.Instant

    /// Jobs that were taken and have neither ended nor been handed back.
    public var jobs = 0
    /// When the last of them ended or was handed back; at first, when the worker started.
    public var lastEnd: Moment
    /// When it last looked for records from Kafka, whether or not there was a broker to give any.
    public var lastPoll: Moment
    /// When its tasks last had a turn on the cooperative pool.
    public var lastTurn: Moment
    /// The first time limit of the renderings under way; nil while there are none.
    public var renderLimit: Moment?
    /// Since when Kafka has refused to take events; nil while it takes them, or is away.
    public var refusedSince: Moment?

    /// A worker that started just now.
    public init(since moment: Moment) {
        (lastEnd, lastPoll, lastTurn) = (moment, moment, moment)
    }

    /// What keeps a worker from getting on.
    public enum Obstacle: Hashable, Sendable, CustomStringConvertible {
        /// A rendering holds its thread, for so long after its time limit.
        case rendering(Duration)
        /// Nobody has looked for records for so long.
        case consumer(Duration)
        /// No task has had a turn for so long: something blocks the cooperative pool.
        case tasks(Duration)
        /// Kafka has refused events for so long, and their jobs cannot end.
        case events(Duration)

        /// For logs.
        public var description: String {
            switch self {
            case .rendering(let late): "a rendering does not stop, \(late.rounded) after its time limit"
            case .consumer(let late): "nobody has looked for records for \(late.rounded)"
            case .tasks(let late): "no task has had a turn for \(late.rounded)"
            case .events(let late): "Kafka has refused events for \(late.rounded)"
            }
        }
    }

    /// How often a consumer looks for records that nothing tells it of.
    private static let pollInterval = Duration.seconds(1)

    /// What has not moved for longer than `patience`.
    public func obstacles(at now: Moment, patience: Duration) -> [Obstacle] {
        func late(since moment: Moment, _ interval: Duration = .zero) -> Duration? {
            let late = moment.duration(to: now)
            return late > patience + interval ? late : nil
        }
        return [
            renderLimit.flatMap { late(since: $0) }.map { .rendering($0) },
            late(since: lastPoll, Self.pollInterval).map { .consumer($0) }, late(since: lastTurn).map { .tasks($0) },
            refusedSince.flatMap { late(since: $0) }.map { .events($0) },
        ].compactMap(\.self)
    }
}

extension Duration {
    /// In whole seconds.
    fileprivate var rounded: Duration { .seconds((self / .seconds(1)).rounded()) }
}
