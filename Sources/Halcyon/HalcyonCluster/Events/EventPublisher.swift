import Formats
import HalcyonModel
import HalcyonWire
import Kafka
import Redis
import Telemetry
import Threads

/// Writes events to their topic.
public struct EventPublisher: Sendable {
    private let producer: Producer
    private let topics: Topics

    /// The producer stays its maker's, who closes it.
    public init(_ producer: Producer, topics: Topics) {
        self.producer = producer
        self.topics = topics
    }

    /// Publishes an event and waits until the brokers have it. While they are away it waits on: an event is never given up.
    /// - Throws: ``KafkaError`` when waiting cannot help: the event is too large, or the producer is closed.
    public func publish(_ event: Event) async throws(KafkaError) {
        try await producer.sendPatiently(Self.record(of: event, topics))
    }

    /// Publishes a best-effort event: it is dropped if Kafka does not accept it.
    public func offer(_ event: Event) async {
        // Nobody waits for it: the terminal event says what matters.
        _ = try? await producer.send(Self.record(of: event, topics))
    }

    /// The message that an event is.
    public static func record(of event: Event, _ topics: Topics) -> ProducerRecord {
        ProducerRecord(
            topic: topics.events, key: event.key.map { Array($0.utf8) }, value: event.json,
            headers: headers + (event.webhook.map { [RecordHeader(webhookHeader, $0.text)] } ?? []))
    }

    /// The header that names the webhook which an event is for.
    public static let webhookHeader = "halcyon-webhook"

    private static let headers = [RecordHeader("content-type", Event.mediaType)]
}

extension Producer {
    /// Sends again for as long as the error is one that time mends.
    /// - Throws: ``KafkaError`` that time does not mend.
    func sendPatiently(_ record: ProducerRecord) async throws(KafkaError) {
        while true {
            do throws(KafkaError) {
                try await send(record)
                return
            } catch {
                // librdkafka has tried for message.timeout.ms already.
                guard error.isRetriable else { throw error }
            }
        }
    }
}

/// Tells Redis of events that were taken, one after the other, until it has taken them.
struct EventBatchSender: Sendable {
    let redis: RedisClient
    /// Seconds.
    let maximumAge: Double
    let commands: EventRelay.Commands
    let log: Log
    let metrics: RelayMetrics

    /// Commands that leave together, and the bytes they carry.
    private static let most = (records: 256, bytes: 1 << 20)
    /// Between attempts while Redis does not take them.
    private static let rest = Duration.milliseconds(500)

    func send(_ taken: [TakenRecord]) async {
        var next = taken[...]
        while !next.isEmpty {
            var bytes = 0
            let count = next.prefix(Self.most.records).prefix { taken in
                defer { bytes += taken.record.value?.count ?? 0 }
                return bytes < Self.most.bytes
            }.count
            await sendAll(Array(next.prefix(count)))
            next = next.dropFirst(count)
        }
    }

    /// Until all of them are told or handed back. Meanwhile no other event is, so that each partition keeps its order.
    private func sendAll(_ taken: [TakenRecord]) async {
        var left = taken
        var isAway = false
        while true {
            left = left.filter(begin)
            if left.isEmpty { break }
            let (count, error) = await tell(left.map(\.record))
            for taken in left.prefix(count) { taken.end() }
            metrics.published.add(count)
            left.removeFirst(count)
            guard let error else { continue }
            if !isAway { log.warning("Redis takes no events; they wait for it", ["error": "\(error)"]) }
            isAway = true
            left = left.filter { taken in
                if !taken.rest() {
                    taken.handBack()
                    return false
                }
                return true
            }
            await Task.sleepUnlessCancelled(for: Self.rest)
        }
        if isAway { log.notice("Redis takes events again, or another worker has them") }
    }

    /// Whether an event is to be told here and now.
    private func begin(_ taken: TakenRecord) -> Bool {
        guard taken.begin() else {
            taken.handBack()
            return false
        }
        let age = Double(Timestamp.now.milliseconds - taken.record.timestamp) / 1000
        if taken.record.value == nil || (taken.record.timestamp >= 0 && age > maximumAge) {
            taken.end()
            metrics.stale.add()
            return false
        }
        return true
    }

    /// - Returns: how many were taken before one that was not, and why that was not.
    private func tell(_ records: [ConsumedRecord]) async -> (Int, RedisError?) {
        let commands = records.map(commands)
        do throws(RedisError) {
            var replies = try await redis.pipeline(commands.flatMap(\.self))[...]
            for (index, group) in commands.enumerated() {
                for case .error(let error) in replies.prefix(group.count) { return (index, error) }
                replies = replies.dropFirst(group.count)
            }
            return (records.count, nil)
        } catch {
            return (0, error)
        }
    }
}
