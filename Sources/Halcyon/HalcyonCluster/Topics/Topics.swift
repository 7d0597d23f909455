import HalcyonModel
import HalcyonWire
import Kafka

/// The topics of one Halcyon cluster: a prefix and fixed names (`kafka.prefix`, `halcyon.` unless set), and one for each length of
/// waiting (`retry.delays`, `webhooks.delays`).
public struct Topics: Hashable, Sendable {
    /// What stands before each name.
    public var prefix: String
    /// How long jobs wait at most that go through each of the topics of retries, rising.
    public var retryDelays: [Duration]

    /// How long webhooks wait at most that go through each of their own topics, rising.
    public var webhookDelays: [Duration]

    /// Takes the values as they are.
    public init(
        prefix: String = "halcyon.", retryDelays: [Duration] = [.seconds(10), .seconds(60), .seconds(600)],
        webhookDelays: [Duration] = [.seconds(10), .seconds(60), .seconds(600), .seconds(3600)]
    ) {
        self.prefix = prefix
        self.retryDelays = retryDelays
        self.webhookDelays = webhookDelays
    }

    /// Where producers put jobs.
    public func jobs(_ lane: Lane) -> String { prefix + lane.topic }
    /// Where jobs wait so long at most to be tried again: `retry.10s`, `retry.1m`.
    public func retry(_ delay: Duration) -> String { "\(prefix)retry.\(Self.name(of: delay))" }
    /// Where webhooks wait so long at most to be sent again: `webhooks.10s`.
    public func webhooks(_ delay: Duration) -> String { "\(prefix)webhooks.\(Self.name(of: delay))" }
    /// Where events are published, keyed by job id.
    public var events: String { prefix + "events" }
    /// What could not be done, as it came, with the reason in headers.
    public var dead: String { prefix + "dead" }
    /// What all workers are told at once.
    public var control: String { prefix + "control" }

    /// All lanes, the most urgent first.
    public var lanes: [String] { Lane.allCases.map(jobs) }
    /// All topics of retries, the shortest first.
    public var retries: [String] { retryDelays.map(retry) }
    /// All topics of webhooks that are to be sent again, the shortest first.
    public var webhookRetries: [String] { webhookDelays.map(webhooks) }
    /// Where workers take jobs from.
    public var taken: [String] { lanes + retries }
    /// Every topic that must be there.
    public var all: [String] { taken + [events] + webhookRetries + [dead, control] }

    /// In the largest unit that is whole: `10m`, `90s`, `250ms`.
    private static func name(of delay: Duration) -> String {
        let milliseconds = Int64((delay / .milliseconds(1)).rounded())
        if milliseconds % 60_000 == 0 { return "\(milliseconds / 60_000)m" }
        return milliseconds % 1000 == 0 ? "\(milliseconds / 1000)s" : "\(milliseconds)ms"
    }
}

extension Topics {
    /// The record of a job, for its lane. It is keyed by its source, so that jobs of one source come to one worker where that is possible.
    public func record(of prepared: PreparedJob, headers: [RecordHeader] = []) -> ProducerRecord {
        ProducerRecord(
            topic: jobs(prepared.lane), key: Array(prepared.job.source.text.utf8), value: prepared.message,
            headers: headers)
    }
}

/// What waits in topics for a consumer group.
public struct GroupLag: Sendable {
    /// Messages by partition that the group has not passed.
    public let waiting: [TopicPartition: Int64]
    /// Whether it has ever committed in one of them.
    public let hasCommitted: Bool

    /// All that waits in a topic.
    public func count(in topic: String) -> Int64 {
        waiting.reduce(0) { $1.key.topic == topic ? $0 + $1.value : $0 }
    }

    /// Looks it up. Of a partition where the group has committed nothing, all that is there waits.
    /// - Parameters:
    ///   - topics: those that the metadata does not have are left out.
    ///   - limit: for each of two questions.
    /// - Throws: `KafkaError`, also when the group's coordinator does not answer in time.
    public static func of(
        _ group: String, in topics: [String], by admin: Admin, _ metadata: ClusterMetadata, within limit: Duration
    ) async throws(KafkaError) -> GroupLag {
        var partitions: [TopicPartition] = []
        for topic in topics { partitions += (metadata.topics[topic] ?? []).map { TopicPartition(topic, $0.id) } }
        let written = try await admin.watermarks(of: partitions, within: limit)
        let committed = try await admin.committed(by: group, in: partitions, within: limit)
        let waiting = written.mapValues { $0.upperBound - $0.lowerBound }.merging(
            committed.map { ($0.key, max(0, (written[$0.key]?.upperBound ?? 0) - $0.value.offset)) }
        ) { $1 }
        return GroupLag(waiting: waiting, hasCommitted: !committed.isEmpty)
    }
}
