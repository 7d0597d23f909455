import Kafka
import Redis
import Telemetry

/// The librdkafka properties for each role of Halcyon's clients. The operator's properties override the defaults.
public struct KafkaProperties: Sendable {
    private let own: [String: String]

    /// Creates properties.
    /// - Parameters:
    ///   - brokers: the bootstrap servers, `host:port`, separated by commas.
    ///   - properties: the librdkafka properties that the operator set.
    public init(brokers: String, properties: [String: String] = [:]) {
        own = ["bootstrap.servers": brokers].merging(properties) { $1 }
    }

    /// The properties of an admin client: metadata, offsets, creation of topics.
    public var admin: [String: String] { merged(["client.id": "halcyon-admin"]) }

    /// The properties of a producer that neither loses records when a broker fails nor duplicates them in retries.
    public var producer: [String: String] {
        merged(Self.durable.merging(["client.id": "halcyon"]) { $1 })
    }

    /// The properties of a producer for a caller that waits: a record that the brokers have not accepted within `limit`
    /// is never sent, so that the caller can report the failure.
    /// - Parameter limit: the `message.timeout.ms`, unless the operator's is shorter.
    public func producer(within limit: Duration) -> [String: String] {
        let names = ["message.timeout.ms", "delivery.timeout.ms"]
        let limits = names.compactMap { own[$0].flatMap { Int($0) } }.filter { $0 > 0 }
        var properties = producer.filter { !names.contains($0.key) }
        properties["message.timeout.ms"] = "\(limits.reduce(Int(limit / .milliseconds(1)), min))"
        return properties
    }

    private static let durable = ["acks": "all", "enable.idempotence": "true", "linger.ms": "2"]

    /// The properties of a reader of a topic without a group, for callers that wait for messages.
    public var reader: [String: String] {
        // Kafka responds as soon as there are messages. The mock broker of librdkafka responds after this time.
        merged(["client.id": "halcyon-reader", "fetch.wait.max.ms": "50"])
    }

    /// The properties of a reader of control messages, which are rare. Kafka holds each request until there is a
    /// message.
    public var control: [String: String] { merged(["client.id": "halcyon-control"]) }

    /// The properties of a consumer of jobs in `group`.
    /// - Parameters:
    ///   - instance: the name of a static member (KIP-345); nil for a dynamic one.
    ///   - patience: the time that a rebalance may wait for revoked partitions.
    ///   - exactlyOnce: true if offsets are committed in transactions. The member then waits for pending transactions,
    ///     regardless of the operator's settings.
    public func worker(
        group: String, instance: String? = nil, revocationTimeout: Duration = .seconds(10), exactlyOnce: Bool = false
    ) -> [String: String] {
        var role = [
            "client.id": "halcyon-worker", "group.id": group, "auto.offset.reset": "earliest",
            // This strategy distributes the partitions of each lane evenly. cooperative-sticky counts the partitions of
            // all topics together: after a few rebalances, one worker may own all partitions of the busy lanes and
            // another those of idle retry topics.
            "partition.assignment.strategy": "range",
            "max.poll.interval.ms": "\(rebalanceLimit(revocationTimeout))",
            // A member learns of a rebalance with its next heartbeat, and the group waits for it. The default of
            // librdkafka is three seconds.
            "heartbeat.interval.ms": "500",
            // Heartbeats are sent from a separate thread. A member without heartbeats for this time has crashed or
            // hangs.
            "session.timeout.ms": "\(Self.sessionTimeout)",
        ]
        if let instance { role["group.instance.id"] = instance }
        // In the newer protocol (KIP-848) the brokers set these properties, and librdkafka rejects them.
        if own["group.protocol"] == "consumer" {
            for name in ["partition.assignment.strategy", "heartbeat.interval.ms", "session.timeout.ms"] {
                role[name] = nil
            }
        }
        return merged(role).merging(exactlyOnce ? ["isolation.level": "read_committed"] : [:]) { $1 }
    }

    /// The properties of a consumer of committed events in `group`.
    /// - Parameter patience: the time that a rebalance may wait for revoked partitions.
    public func notifier(group: String, revocationTimeout: Duration = .seconds(10)) -> [String: String] {
        worker(group: group, revocationTimeout: revocationTimeout, exactlyOnce: true)
            .merging(["client.id": own["client.id"] ?? "halcyon-notifier"]) { $1 }
    }

    /// The properties of a consumer of committed events in `group` that maintains state which no client waits for.
    /// Events are fetched in batches, with a delay of up to a tenth of a second, because a fetch costs as much as many
    /// events.
    public func bookkeeper(group: String) -> [String: String] {
        notifier(group: group).merging([
            "client.id": own["client.id"] ?? "halcyon-bookkeeper",
            "fetch.min.bytes": own["fetch.min.bytes"] ?? "65536",
            "fetch.wait.max.ms": own["fetch.wait.max.ms"] ?? "100",
        ]) { $1 }
    }

    /// The properties of a producer that publishes events and commits offsets in transactions. Timeouts of the operator
    /// are capped at that of transactions, because librdkafka rejects longer ones.
    /// - Parameter instance: the unique name of the worker; nil for a random one.
    public func transactions(group: String, instance: String?) -> [String: String] {
        let name = instance ?? "\(UInt64.random(in: 0 ... .max))-\(UInt64.random(in: 0 ... .max))"
        var properties = merged(
            Self.durable.merging([
                "client.id": "halcyon-transactions", "transactional.id": "\(group)-\(name)",
                "transaction.timeout.ms": "\(transactionTimeout)",
            ]) { $1 })
        let limit = properties["transaction.timeout.ms"].flatMap { Int($0) } ?? transactionTimeout
        for name in ["message.timeout.ms", "delivery.timeout.ms", "socket.timeout.ms"] {
            guard let timeout = properties[name].flatMap({ Int($0) }) else { continue }
            // 0 stands for no limit.
            properties[name] = "\(timeout > 0 ? min(timeout, limit) : limit)"
        }
        return properties
    }

    /// The time that the group waits for a live member to rejoin: a minute, or the rebalance timeout plus half a
    /// minute. With Kafka's default of five minutes the whole group could stop for as long. (Chaos tests found that
    /// Apache Kafka 4.1 may fail to check the liveness of members that it knew before it was killed.) The interval of
    /// polls is not affected, because consumers poll at least once a second. librdkafka requires at least the session
    /// timeout.
    private func rebalanceLimit(_ revocationTimeout: Duration) -> Int {
        max(60_000, sessionTimeout, Int(revocationTimeout / .milliseconds(1)) + 30_000)
    }

    private static let sessionTimeout = 10_000

    private var sessionTimeout: Int { own["session.timeout.ms"].flatMap { Int($0) } ?? Self.sessionTimeout }

    /// The time without heartbeats after which the group considers a member crashed.
    public var session: Duration { .milliseconds(sessionTimeout) }

    /// Half of the session timeout, from 2 to 10 s. The transaction of a crashed worker is aborted before its
    /// partitions are assigned to others, and readers of committed events do not wait long for it.
    private var transactionTimeout: Int {
        min(max(sessionTimeout / 2, 2_000), 10_000)
    }

    private func merged(_ role: [String: String]) -> [String: String] {
        let common = [
            // New topics and recovered brokers are detected within seconds.
            "topic.metadata.refresh.interval.ms": "10000", "reconnect.backoff.max.ms": "2000",
        ]
        return common.merging(role) { $1 }.merging(own) { $1 }
    }
}

extension ClientCallbacks {
    /// Logs once when Kafka becomes unavailable and once when it recovers. Log lines of librdkafka have the level
    /// debug.
    /// - Parameter gauge: the gauge of availability, 0 or 1; nil for none.
    public static func logging(to log: Log, _ gauge: Gauge? = nil) -> ClientCallbacks {
        ClientCallbacks(
            log: { level, facility, message in
                log.debug(message, ["facility": facility, "level": "\(level)"])
            },
            connection: { connection in
                switch connection {
                case .lost:
                    gauge?.set(0)
                    log.warning("Kafka is unavailable; waiting for it")
                case .restored:
                    gauge?.set(1)
                    log.notice("Kafka is available again")
                }
            })
    }
}

/// The metrics of the connections to Kafka and Redis.
public enum ConnectionMetrics {
    /// A gauge that is 1 while Redis responds, and 0 until it has responded for the first time.
    public static func redis(_ metrics: Metrics) -> Gauge {
        metrics.gauge("halcyon_redis_up", help: "1 while there is a connection to Redis, otherwise 0.")
    }

    /// A gauge that is 0 while all brokers are unavailable, and initially 1.
    /// - Parameter client: the name of the Kafka client within the process.
    public static func kafka(_ metrics: Metrics, _ client: String) -> Gauge {
        let gauge = metrics.gauge(
            "halcyon_kafka_up", help: "0 while all Kafka brokers are unavailable, otherwise 1, by client.",
            labels: ["client": client])
        gauge.set(1)
        return gauge
    }
}

extension RedisState {
    /// True if commands can be executed, even if some primaries of a cluster are unavailable.
    public var isServing: Bool {
        if case .lost = self { false } else { true }
    }
}

/// The time that a client waits for the end of a job, in milliseconds from its submission: a header of its record.
///
/// It is not a deadline. A job in flight is finished, because later requests may need the result. But a job for which
/// no client waits any more is not retried.
public struct WaitTimeout: Hashable, Sendable {
    /// The name of the header.
    static let name = "halcyon-wait"
    /// The maximum in milliseconds: a day.
    static let longest: Int64 = 86_400_000

    /// The time in milliseconds.
    public let milliseconds: Int64

    /// Creates a timeout from a duration.
    public init(_ duration: Duration) {
        milliseconds = min(max(0, Int64(duration / .milliseconds(1))), Self.longest)
    }

    /// Reads the timeout of a record; nil if no client is known to wait.
    public init?(of record: ConsumedRecord) {
        guard let text = record.headers.text(Self.name), let number = Int64(text), (0...Self.longest).contains(number)
        else { return nil }
        milliseconds = number
    }

    /// The header of the record.
    public var header: RecordHeader { RecordHeader(Self.name, Array("\(milliseconds)".utf8)) }
}
