import HalcyonModel
import Kafka
import Redis

/// The Redis channels on which events are published.
public enum EventChannel {
    /// All events.
    public static let all = "halcyon:events"

    /// Returns the channel with the events of one job.
    public static func of(job id: String) -> String { "\(all):\(id)" }
}

extension EventChannel {
    /// Returns the commands that publish an event: on the channel of all events and, if the record has a job id as its
    /// key, on the channel of the job.
    static func publishing(_ record: ConsumedRecord) -> [[RedisArgument]] {
        let value = RedisArgument.bytes(record.value ?? [])
        let all: [RedisArgument] = ["PUBLISH", .string(all), value]
        guard let key = record.key else { return [all] }
        return [all, ["PUBLISH", .bytes(Array(of(job: "").utf8) + key), value]]
    }
}
