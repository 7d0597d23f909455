/// A snapshot of a worker's activity and of its last signs of progress. A pure value.
///
/// Waiting for an unavailable server or an origin does not count as being stuck, because such waits have no time limit
/// imposed by the worker. An operation that has a time limit and exceeds it by far does.
public struct HealthSnapshot: Hashable, Sendable {
    /// An instant of the monotonic clock.
    public typealias Moment = ContinuousClock.Instant

    /// The number of jobs in flight, which have neither ended nor been returned to the queue.
    public var jobs = 0
    /// The time of the last poll for records, whether or not a broker was reachable.
    public var lastPoll: Moment
    /// The time at which a task of the worker last ran on the cooperative thread pool.
    public var lastTurn: Moment
    /// The earliest deadline of the renderings in flight. Nil if there are none.
    public var renderLimit: Moment?
    /// The time since which Kafka has rejected events. Nil while it accepts them or is unavailable.
    public var refusedSince: Moment?

    /// Creates the snapshot of a worker that has just started.
    public init(since moment: Moment) {
        (lastPoll, lastTurn) = (moment, moment)
    }

    /// The reason why a worker is stuck.
    public enum StuckReason: Hashable, Sendable, CustomStringConvertible {
        /// A rendering has blocked its thread for this long after its deadline.
        case rendering(Duration)
        /// The consumer has not polled for this long.
        case consumer(Duration)
        /// No task has run for this long, because something blocks the cooperative thread pool.
        case tasks(Duration)
        /// Kafka has rejected events for this long, so that their jobs cannot end.
        case events(Duration)

        /// The text for log lines.
        public var description: String {
            switch self {
            case .rendering(let late): "a rendering has not stopped \(late.rounded) after its time limit"
            case .consumer(let late): "the consumer has not polled for \(late.rounded)"
            case .tasks(let late): "no task has run for \(late.rounded)"
            case .events(let late): "Kafka has rejected events for \(late.rounded)"
            }
        }
    }

    /// The interval at which an idle consumer polls.
    private static let pollInterval = Duration.seconds(1)

    /// Returns the reasons why the worker is stuck: everything without progress for longer than `stuckAfter`.
    public func obstacles(at now: Moment, stuckAfter: Duration) -> [StuckReason] {
        func late(since moment: Moment, _ interval: Duration = .zero) -> Duration? {
            let late = moment.duration(to: now)
            return late > stuckAfter + interval ? late : nil
        }
        return [
            renderLimit.flatMap { late(since: $0) }.map { .rendering($0) },
            late(since: lastPoll, Self.pollInterval).map { .consumer($0) }, late(since: lastTurn).map { .tasks($0) },
            refusedSince.flatMap { late(since: $0) }.map { .events($0) },
        ].compactMap(\.self)
    }
}

extension Duration {
    /// The duration rounded to whole seconds.
    fileprivate var rounded: Duration { .seconds((self / .seconds(1)).rounded()) }
}
