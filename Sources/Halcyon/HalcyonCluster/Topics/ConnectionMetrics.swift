import Redis
import Telemetry

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
