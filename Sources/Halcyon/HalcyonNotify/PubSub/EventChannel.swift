import HalcyonModel
import Kafka
import Redis

/// The channels of Redis that events are published on.
public enum EventChannel {
    /// All events.
    public static let all = "halcyon:events"

    /// The events of one job.
    public static func of(job id: String) -> String { "\(all):\(id)" }
}

extension EventChannel {
    /// Tells all who listen, and those who listen for one job: what has a job's id for its key.
    static func publishing(_ record: ConsumedRecord) -> [[RedisArgument]] {
        let value = RedisArgument.bytes(record.value ?? [])
        let all: [RedisArgument] = ["PUBLISH", .string(all), value]
        guard let key = record.key else { return [all] }
        return [all, ["PUBLISH", .bytes(Array(of(job: "").utf8) + key), value]]
    }
}
