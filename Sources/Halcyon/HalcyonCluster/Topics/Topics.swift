import HalcyonCoding
import HalcyonModel
import JSON
import Kafka

/// The topics of a Halcyon cluster. A prefix (`kafka.prefix`, by default `halcyon.`) is followed by a fixed name, or by
/// the name of a delay (`retry.delays`, `schedule.delays`, `webhooks.delays`).
public struct Topics: Hashable, Sendable {
    /// The prefix of all names.
    public var prefix: String
    /// The maximum delay of each retry topic, in ascending order.
    public var retryDelays: [Duration]
    /// The delay of each delay topic, in ascending order; at least one.
    public var startDelays: [Duration]
    /// The maximum delay of each retry topic for webhooks, in ascending order.
    public var webhookDelays: [Duration]

    /// Creates topics with default delays.
    public init(
        prefix: String = "halcyon.", retryDelays: [Duration] = [.seconds(10), .seconds(60), .seconds(600)],
        startDelays: [Duration] = [.seconds(10), .seconds(120), .seconds(1800)],
        webhookDelays: [Duration] = [.seconds(10), .seconds(60), .seconds(600), .seconds(3600)]
    ) {
        self.prefix = prefix
        self.retryDelays = retryDelays
        self.startDelays = startDelays
        self.webhookDelays = webhookDelays
    }

    /// The topic of a lane, to which producers submit jobs.
    public func jobs(_ lane: Lane) -> String { prefix + lane.topic }
    /// The retry topic with a maximum delay, such as `retry.10s` or `retry.1m`.
    public func retry(_ delay: Duration) -> String { "\(prefix)retry.\(Self.name(of: delay))" }
    /// The delay topic with a delay, such as `delay.10s`, in which jobs wait for their start.
    public func delay(_ delay: Duration) -> String { "\(prefix)delay.\(Self.name(of: delay))" }
    /// The retry topic for webhooks with a maximum delay, such as `webhooks.10s`.
    public func webhooks(_ delay: Duration) -> String { "\(prefix)webhooks.\(Self.name(of: delay))" }
    /// The topic of events, keyed by job id.
    public var events: String { prefix + "events" }
    /// The topic of dead letters: messages that could not be processed, unchanged, with the reason in headers.
    public var dead: String { prefix + "dead" }
    /// The topic of control messages to all workers.
    public var control: String { prefix + "control" }

    /// The topics of all lanes, the most urgent first.
    public var lanes: [String] { Lane.allCases.map(jobs) }
    /// All retry topics, the shortest delay first.
    public var retries: [String] { retryDelays.map(retry) }
    /// All delay topics, the shortest delay first.
    public var delays: [String] { startDelays.map(delay) }
    /// All retry topics for webhooks, the shortest delay first.
    public var webhookRetries: [String] { webhookDelays.map(webhooks) }
    /// The topics from which workers consume jobs.
    public var taken: [String] { lanes + retries + delays + [overflow] }
    /// The topic of jobs that were moved out of the way of others in their lanes.
    public var overflow: String { prefix + "overflow" }
    /// The topic of messages about batches.
    public var batches: String { prefix + "batches" }
    /// All required topics.
    public var all: [String] { taken + [events] + webhookRetries + [dead, control, batches] }

    /// Formats a delay in the largest unit that divides it: `10m`, `90s`, `250ms`.
    private static func name(of delay: Duration) -> String {
        let milliseconds = Int64((delay / .milliseconds(1)).rounded())
        if milliseconds % 60_000 == 0 { return "\(milliseconds / 60_000)m" }
        return milliseconds % 1000 == 0 ? "\(milliseconds / 1000)s" : "\(milliseconds)ms"
    }
}

extension Topics {
    /// Creates the record of a job for its lane. The key is the source, so that jobs of one source reach the same
    /// worker where possible.
    public func record(of prepared: ValidatedJob, headers: [RecordHeader] = []) -> ProducerRecord {
        ProducerRecord(
            topic: jobs(prepared.lane), key: Array(prepared.job.source.text.utf8), value: prepared.message,
            headers: headers)
    }
}

extension Topics {
    /// Creates the record of a message about a batch. All messages of Halcyon are in one partition, so that they are in
    /// order. Messages of producers may be in others.
    public func record(of message: BatchMessage) -> ProducerRecord {
        ProducerRecord(
            topic: batches, partition: Self.batchPartition, key: Array(message.batch.utf8), value: message.json)
    }

    static let batchPartition: Int32 = 0
}

/// The lag of a consumer group.
public struct GroupLag: Sendable {
    /// The number of messages after the committed offset, by partition.
    public let waiting: [TopicPartition: Int64]
    /// The committed offset of each partition, or that of its oldest message if none was committed.
    public let positions: [TopicPartition: Int64]
    /// True if the group has ever committed an offset in one of the partitions.
    public let hasCommitted: Bool

    /// The lag in a topic.
    public func count(in topic: String) -> Int64 {
        waiting.reduce(0) { $1.key.topic == topic ? $0 + $1.value : $0 }
    }

    /// Looks up the lag of a group. In a partition without a committed offset, all messages count.
    /// - Parameters:
    ///   - topics: the topics. Those that are not in the metadata are ignored.
    ///   - limit: the timeout of each of the two requests.
    /// - Throws: `KafkaError`, also if the coordinator of the group does not respond in time.
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
        let positions = written.mapValues(\.lowerBound).merging(committed.mapValues(\.offset)) { $1 }
        return GroupLag(waiting: waiting, positions: positions, hasCommitted: !committed.isEmpty)
    }

    /// The sum of the positions in a topic. It grows by one with each message that is done with.
    public func position(in topic: String) -> Int64 {
        positions.reduce(0) { $1.key.topic == topic ? $0 + $1.value : $0 }
    }
}

/// The numbers of jobs that wait in the topics of a cluster.
public struct WaitingJobs: Hashable, Sendable {
    /// The lag of each lane.
    public var lanes: [Lane: Int64]
    /// The lag of all retry topics together.
    public var retries: Int64
    /// The lag of the overflow topic.
    public var overflow: Int64
    /// The lag of all delay topics together.
    public var scheduled: Int64

    /// Creates numbers from all values.
    /// - Parameters:
    ///   - lanes: The lag of each lane.
    ///   - retries: The lag of all retry topics together.
    ///   - overflow: The lag of the overflow topic.
    ///   - scheduled: The lag of all delay topics together.
    public init(lanes: [Lane: Int64], retries: Int64 = 0, overflow: Int64 = 0, scheduled: Int64 = 0) {
        self.lanes = lanes
        self.retries = retries
        self.overflow = overflow
        self.scheduled = scheduled
    }

    /// Sums up the lag of the workers' consumer group.
    /// - Parameters:
    ///   - lag: The lag in ``Topics/taken``.
    ///   - topics: The topics of the cluster.
    public init(_ lag: GroupLag, _ topics: Topics) {
        self.init(
            lanes: Dictionary(uniqueKeysWithValues: Lane.allCases.map { ($0, lag.count(in: topics.jobs($0))) }),
            retries: topics.retries.reduce(0) { $0 + lag.count(in: $1) }, overflow: lag.count(in: topics.overflow),
            scheduled: topics.delays.reduce(0) { $0 + lag.count(in: $1) })
    }

    /// Writes the list `lanes` and the members `retries`, `overflow` and `scheduled`.
    /// - Parameters:
    ///   - writer: The object.
    ///   - more: Writes further members of a lane.
    public func writeMembers(
        to writer: inout JSONWriter, _ more: (Lane, inout JSONWriter) -> Void = { _, _ in }
    ) {
        writer.name("lanes")
        writer.array { writer in
            for lane in Lane.allCases {
                writer.object { writer in
                    writer.member("lane", lane.rawValue)
                    writer.member("lag", lanes[lane] ?? 0)
                    more(lane, &writer)
                }
            }
        }
        writer.member("retries", retries)
        writer.member("overflow", overflow)
        writer.member("scheduled", scheduled)
    }
}
