import Concurrency
import Kafka
import Redis
import Telemetry

/// Publishes committed events to Redis, in the order of their partitions, and retries each one until Redis accepts it.
///
/// Relays of one group share the partitions, in any number of processes.
public final class EventRelay: Sendable {
    /// The configuration of a relay.
    public struct Options: Sendable {
        /// The topic of events.
        public var topic: String
        /// The properties of a member of the relay's group: ``KafkaProperties/notifier(group:patience:)``.
        public var properties: [String: String]
        /// The limits of the consumer and its commit settings.
        public var consumer: JobConsumer.Options
        /// The name of the relayed messages in metric names and in the log, such as `notifications`.
        public var things: String
        /// The age in seconds beyond which events are dropped, for example after a long outage of Redis.
        public var maximumAge: Double

        /// Creates options from all values.
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

    /// The function that returns the Redis commands for an event; none for an event to skip.
    public typealias Commands = @Sendable (ConsumedRecord) -> [[RedisArgument]]

    private let options: Options
    private let consumer: JobConsumer
    private let redis: RedisClient
    private let bell: AsyncStream<Void>.Continuation
    private let sending: Task<Void, Never>

    /// Creates a relay, which starts with ``start()``.
    public init(
        _ options: Options, to endpoint: RedisEndpoint, log: Log, metrics: Metrics, _ commands: @escaping Commands
    ) {
        let log = log.with(["of": options.things])
        let redis = RedisClient(endpoint)
        let arrivals = BatchQueue<JobDelivery>()
        let (rings, bell) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        consumer = JobConsumer(options: options.consumer, of: options.things, log: log, metrics: metrics) { records in
            for taken in records { if case .first = arrivals.enqueue(taken) { bell.yield() } }
        }
        let sender = EventBatchSender(
            redis: redis, maximumAge: options.maximumAge, commands: commands, log: log,
            metrics: RelayMetrics(metrics, of: options.things))
        sending = Task {
            for await _ in rings { await sender.send(arrivals.drain()) }
        }
        self.options = options
        self.redis = redis
        self.bell = bell
    }

    /// Joins the group.
    /// - Throws: ``KafkaError`` that names a property which librdkafka rejects.
    public func start() async throws(KafkaError) {
        try await consumer.start(topics: [options.topic], properties: options.properties, events: ClientCallbacks())
    }

    /// Waits until the group has assigned partitions for the first time.
    public func ready() async { await consumer.waitForAssignment() }

    /// Stops receiving events, finishes those in flight within `grace`, commits, leaves the group, and closes all
    /// connections.
    public func shutdown(gracePeriod grace: Duration) async {
        _ = await consumer.shutdown(gracePeriod: grace)
        bell.finish()
        sending.cancel()
        await sending.value
        await redis.close()
    }
}

/// The metrics of a relay.
struct RelayMetrics: Sendable {
    /// Events that were published to Redis.
    let published: Counter
    /// Events that were too old to publish.
    let stale: Counter

    init(_ metrics: Metrics, of things: String) {
        func events(_ outcome: String) -> Counter {
            metrics.counter(
                "halcyon_\(things)_total", help: "Events relayed to Redis, by outcome.",
                labels: ["outcome": outcome])
        }
        (published, stale) = (events("published"), events("stale"))
    }
}
