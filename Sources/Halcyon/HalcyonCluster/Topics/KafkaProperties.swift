import Kafka
import Redis
import Telemetry

/// librdkafka's properties for each of Halcyon's roles: sound defaults, over which the operator's own win.
public struct KafkaProperties: Sendable {
    private let own: [String: String]

    /// - Parameters:
    ///   - brokers: `host:port`, several with commas between them.
    ///   - properties: librdkafka's, as the operator set them.
    public init(brokers: String, properties: [String: String] = [:]) {
        own = ["bootstrap.servers": brokers].merging(properties) { $1 }
    }

    /// For a client that only asks: metadata, offsets, topics to create.
    public var admin: [String: String] { merged(["client.id": "halcyon-admin"]) }

    /// For producing: no event is lost by a broker's failure, and none is doubled by a retry.
    public var producer: [String: String] {
        merged(Self.durable.merging(["client.id": "halcyon"]) { $1 })
    }

    /// For producing what somebody waits for: what the brokers have not taken within `limit` is never sent, so that it can be told.
    /// - Parameter limit: `message.timeout.ms`, unless the operator's own is shorter.
    public func producer(within limit: Duration) -> [String: String] {
        let names = ["message.timeout.ms", "delivery.timeout.ms"]
        let limits = names.compactMap { own[$0].flatMap { Int($0) } }.filter { $0 > 0 }
        var properties = producer.filter { !names.contains($0.key) }
        properties["message.timeout.ms"] = "\(limits.reduce(Int(limit / .milliseconds(1)), min))"
        return properties
    }

    private static let durable = ["acks": "all", "enable.idempotence": "true", "linger.ms": "2"]

    /// For reading a topic without a group, by somebody who waits for what comes.
    public var reader: [String: String] {
        // Kafka answers as soon as there is something; librdkafka's mock when this time is over.
        merged(["client.id": "halcyon-reader", "fetch.wait.max.ms": "50"])
    }

    /// For hearing what all workers are told, which is seldom: Kafka holds each request until there is something.
    public var control: [String: String] { merged(["client.id": "halcyon-control"]) }

    /// For taking jobs as a member of `group`.
    /// - Parameters:
    ///   - instance: the name of a static member (KIP-345); nil for a dynamic one.
    ///   - patience: how long giving partitions back may take.
    ///   - exactlyOnce: whether offsets are committed by transactions: then those under way must be waited for, whatever the operator set.
    public func worker(
        group: String, instance: String? = nil, patience: Duration = .seconds(10), exactlyOnce: Bool = false
    ) -> [String: String] {
        var role = [
            "client.id": "halcyon-worker", "group.id": group, "auto.offset.reset": "earliest",
            // The partitions of each lane are shared evenly. cooperative-sticky counts those of all topics together: after a few rebalances
            // one worker has all of the lanes that are busy and another those of retries, where nothing comes.
            "partition.assignment.strategy": "range",
            "max.poll.interval.ms": "\(rebalanceLimit(patience))",
            // A member learns by its next heartbeat that another one has come or gone, and the group waits for it: half a second rather
            // than librdkafka's three.
            "heartbeat.interval.ms": "500",
            // Heartbeats have a thread of their own: who sends none for so long is dead, or does not run.
            "session.timeout.ms": "\(Self.sessionTimeout)",
        ]
        if let instance { role["group.instance.id"] = instance }
        // The brokers set these for members of the newer protocol (KIP-848), and librdkafka refuses them.
        if own["group.protocol"] == "consumer" {
            for name in ["partition.assignment.strategy", "heartbeat.interval.ms", "session.timeout.ms"] {
                role[name] = nil
            }
        }
        return merged(role).merging(exactlyOnce ? ["isolation.level": "read_committed"] : [:]) { $1 }
    }

    /// For reading committed events as a member of `group`.
    /// - Parameter patience: how long giving partitions back may take.
    public func notifier(group: String, patience: Duration = .seconds(10)) -> [String: String] {
        worker(group: group, patience: patience, exactlyOnce: true)
            .merging(["client.id": own["client.id"] ?? "halcyon-notifier"]) { $1 }
    }

    /// For keeping books of committed events as a member of `group`, which nobody waits for: events come by the heap rather than one by
    /// one, up to a tenth of a second later, for a fetch costs what many events cost.
    public func bookkeeper(group: String) -> [String: String] {
        notifier(group: group).merging([
            "client.id": own["client.id"] ?? "halcyon-bookkeeper",
            "fetch.min.bytes": own["fetch.min.bytes"] ?? "65536",
            "fetch.wait.max.ms": own["fetch.wait.max.ms"] ?? "100",
        ]) { $1 }
    }

    /// For telling of jobs and committing their offsets at once.
    /// - Parameter instance: the worker's own name; nil for a random one.
    public func transactions(group: String, instance: String?) -> [String: String] {
        let name = instance ?? "\(UInt64.random(in: 0 ... .max))-\(UInt64.random(in: 0 ... .max))"
        return merged(
            Self.durable.merging([
                "client.id": "halcyon-transactions", "transactional.id": "\(group)-\(name)",
                "transaction.timeout.ms": "\(transactionTimeout)",
            ]) { $1 })
    }

    /// A minute, or what giving partitions back takes and half a minute more: for so long the group waits for a member that is there and
    /// does not join anew; Kafka's own five minutes would be five minutes of standstill for all. (Apache Kafka 4.1 can forget to look
    /// whether members live that it knew before it was killed: found by chaos.) Polling is no matter of it: consumers poll once a second
    /// at least. librdkafka wants no less than the session's time.
    private func rebalanceLimit(_ patience: Duration) -> Int {
        max(60_000, sessionTimeout, Int(patience / .milliseconds(1)) + 30_000)
    }

    private static let sessionTimeout = 10_000

    private var sessionTimeout: Int { own["session.timeout.ms"].flatMap { Int($0) } ?? Self.sessionTimeout }

    /// For how long a group takes a member for alive that sends no heartbeats.
    public var session: Duration { .milliseconds(sessionTimeout) }

    /// Half of the session's time, from 2 to 10 s: by when the group gives a silent worker's partitions to others, its transaction is over;
    /// and who reads committed events does not wait long for it.
    private var transactionTimeout: Int {
        min(max(sessionTimeout / 2, 2_000), 10_000)
    }

    private func merged(_ role: [String: String]) -> [String: String] {
        let common = [
            // A topic that is created, or a broker that comes back, is noticed within seconds.
            "topic.metadata.refresh.interval.ms": "10000", "reconnect.backoff.max.ms": "2000",
        ]
        return common.merging(role) { $1 }.merging(own) { $1 }
    }
}

extension ClientEvents {
    /// Says once when Kafka is away and once when it is back; librdkafka's own lines are for finding faults.
    /// - Parameter gauge: 0 while Kafka is away, else 1; nil where nobody asks.
    public static func telling(_ log: Log, _ gauge: Gauge? = nil) -> ClientEvents {
        ClientEvents(
            log: { level, facility, message in
                log.debug(message, ["facility": facility, "level": "\(level)"])
            },
            connection: { connection in
                switch connection {
                case .lost:
                    gauge?.set(0)
                    log.warning("Kafka is away; waiting for it")
                case .restored:
                    gauge?.set(1)
                    log.notice("Kafka is back")
                }
            })
    }
}

/// Whether the servers are there that everything rests on.
public enum ConnectionMetrics {
    /// 1 while Redis answers; 0 until it does for the first time.
    public static func redis(_ metrics: Metrics) -> Gauge {
        metrics.gauge("halcyon_redis_up", help: "1 while there is a connection to Redis, else 0.")
    }

    /// 1 until every broker is away, and again when one is back.
    /// - Parameter client: which of the process' clients of Kafka it is.
    public static func kafka(_ metrics: Metrics, _ client: String) -> Gauge {
        let gauge = metrics.gauge(
            "halcyon_kafka_up", help: "0 while every broker of Kafka is away, else 1; by client of this process.",
            labels: ["client": client])
        gauge.set(1)
        return gauge
    }
}

extension RedisState {
    /// Whether commands are answered, be it that some masters of a cluster are away.
    public var isServing: Bool {
        if case .lost = self { false } else { true }
    }
}

/// For how long somebody waits for a job's end, in milliseconds from when it was written: a header of its record.
///
/// It is no deadline: what is under way is finished for whoever asks next. But the job is not tried again for nobody.
public struct Patience: Hashable, Sendable {
    /// The header's name.
    static let name = "halcyon-wait"
    /// That long at most: a day.
    static let longest: Int64 = 86_400_000

    /// Milliseconds.
    public let milliseconds: Int64

    /// Of so long.
    public init(_ duration: Duration) {
        milliseconds = min(max(0, Int64(duration / .milliseconds(1))), Self.longest)
    }

    /// A record's; nil where nobody is known to wait.
    public init?(of record: ConsumedRecord) {
        guard let text = record.headers.text(Self.name), let number = Int64(text), (0...Self.longest).contains(number)
        else { return nil }
        milliseconds = number
    }

    /// As the record has it.
    public var header: RecordHeader { RecordHeader(Self.name, Array("\(milliseconds)".utf8)) }
}
