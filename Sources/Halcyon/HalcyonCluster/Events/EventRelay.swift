import Kafka
import Redis
import Telemetry
import Threads

/// Tells Redis of committed events: in the order of their partitions, and each until Redis has taken it.
///
/// Relays of one group share the partitions, whichever process they run in.
public final class EventRelay: Sendable {
    /// What a relay tells, as whom and for how long.
    public struct Options: Sendable {
        /// The topic of events.
        public var topic: String
        /// Of a member of the relays' group: ``KafkaProperties/notifier(group:patience:)``.
        public var properties: [String: String]
        /// How events are taken and committed.
        public var consumer: JobConsumer.Options
        /// What is told, in the names of metrics and in the log: `notifications`.
        public var things: String
        /// Seconds after which nobody is told of an event any more, as when Redis was away for long.
        public var maximumAge: Double

        /// Takes the values as they are.
        public init(
            topic: String, properties: [String: String], consumer: JobConsumer.Options, of things: String,
            maximumAge: Double
        ) {
            self.topic = topic
            self.properties = properties
            self.consumer = consumer
            self.things = things
            self.maximumAge = maximumAge
        }
    }

    /// What tells Redis of an event; nothing for one that is of no interest.
    public typealias Commands = @Sendable (ConsumedRecord) -> [[RedisArgument]]

    private let options: Options
    private let consumer: JobConsumer
    private let redis: RedisClient
    private let bell: AsyncStream<Void>.Continuation
    private let sending: Task<Void, Never>

    /// It begins with ``start()``.
    public init(
        _ options: Options, to endpoint: RedisEndpoint, log: Log, metrics: Metrics, _ commands: @escaping Commands
    ) {
        let log = log.with(["of": options.things])
        let redis = RedisClient(endpoint)
        let arrivals = Mailbox<TakenRecord>()
        let (rings, bell) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        consumer = JobConsumer(options: options.consumer, of: options.things, log: log, metrics: metrics) { records in
            for taken in records { if case .first = arrivals.post(taken) { bell.yield() } }
        }
        let sender = EventBatchSender(
            redis: redis, maximumAge: options.maximumAge, commands: commands, log: log,
            metrics: RelayMetrics(metrics, of: options.things))
        sending = Task {
            for await _ in rings { await sender.send(arrivals.take()) }
        }
        self.options = options
        self.redis = redis
        self.bell = bell
    }

    /// Joins the group.
    /// - Throws: ``KafkaError`` that names a property which librdkafka refuses.
    public func start() async throws(KafkaError) {
        try await consumer.start(topics: [options.topic], properties: options.properties, events: ClientEvents())
    }

    /// Waits until the group has given it its share for the first time.
    public func ready() async { await consumer.assignedOnce() }

    /// Takes no more events, finishes what was begun within `grace`, commits, leaves the group, and closes everything.
    public func drain(grace: Duration) async {
        _ = await consumer.drain(grace: grace)
        bell.finish()
        sending.cancel()
        await sending.value
        await redis.close()
    }
}

/// What a relay counts.
struct RelayMetrics: Sendable {
    /// Events that Redis has taken.
    let published: Counter
    /// Events that were too old to be told.
    let stale: Counter

    init(_ metrics: Metrics, of things: String) {
        func events(_ outcome: String) -> Counter {
            metrics.counter(
                "halcyon_\(things)_total", help: "Events that Redis is told of, by what became of them.",
                labels: ["outcome": outcome])
        }
        (published, stale) = (events("published"), events("stale"))
    }
}
