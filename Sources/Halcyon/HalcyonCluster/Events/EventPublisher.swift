import Concurrency
import Formats
import HalcyonCoding
import HalcyonModel
import Kafka
import Redis
import Telemetry

/// Publishes events to their topic.
public struct EventPublisher: Sendable {
    private let producer: Producer
    private let topics: Topics

    /// Creates a publisher that uses the given producer. The caller owns the producer and closes it.
    public init(_ producer: Producer, topics: Topics) {
        self.producer = producer
        self.topics = topics
    }

    /// Publishes an event and waits until the brokers have acknowledged it. It retries without limit while the brokers
    /// are unavailable.
    /// - Throws: ``KafkaError`` that a retry cannot fix: the event is too large, or the producer is closed.
    public func publish(_ event: Event) async throws(KafkaError) {
        try await producer.sendWithRetry(Self.record(of: event, topics))
    }

    /// Publishes a best-effort event: it is dropped if Kafka does not accept it.
    public func offer(_ event: Event) async {
        // Errors are ignored, because no reader depends on the event: the terminal event has the outcome.
        _ = try? await producer.send(Self.record(of: event, topics))
    }

    /// The Kafka record of an event.
    public static func record(of event: Event, _ topics: Topics) -> ProducerRecord {
        ProducerRecord(
            topic: topics.events, key: event.key.map { Array($0.utf8) }, value: event.json,
            headers: headers + (event.webhook.map { [RecordHeader(webhookHeader, $0.text)] } ?? [])
                + (event.kind.isTerminal ? event.batch.map { [RecordHeader(batchHeader, $0.batch)] } ?? [] : []))
    }

    /// The Kafka record of an event about a batch. Only its completion is for a webhook.
    static func record(of event: BatchEvent, _ topics: Topics) -> ProducerRecord {
        let webhook = event.kind == .completed ? event.batch.webhook : nil
        return ProducerRecord(
            topic: topics.events, key: Array(event.batch.id.utf8), value: event.json,
            headers: headers + (webhook.map { [RecordHeader(webhookHeader, $0.text)] } ?? []))
    }

    /// The header with the name of the webhook that an event is for.
    public static let webhookHeader = "halcyon-webhook"

    /// The header with the batch of the job that ended with an event.
    public static let batchHeader = "halcyon-batch"

    private static let headers = [RecordHeader("content-type", Event.mediaType)]
}

extension Producer {
    /// Sends a record, and retries without limit while the error is retriable.
    /// - Throws: ``KafkaError`` that is not retriable.
    func sendWithRetry(_ record: ProducerRecord) async throws(KafkaError) {
        while true {
            do throws(KafkaError) {
                try await send(record)
                return
            } catch {
                // librdkafka has retried for message.timeout.ms already.
                guard error.isRetriable else { throw error }
            }
        }
    }
}

/// Publishes received events to Redis, one batch after the other, and retries until Redis accepts them.
struct EventBatchSender: Sendable {
    let redis: RedisClient
    /// The age in seconds beyond which events are dropped.
    let maximumAge: Double
    let commands: EventRelay.Commands
    let log: Log
    let metrics: RelayMetrics

    /// The maximum number of events in one pipeline, and their total size in bytes.
    private static let most = (records: 256, bytes: 1 << 20)
    /// The delay between attempts while Redis rejects them.
    private static let rest = Duration.milliseconds(500)

    func send(_ taken: [JobDelivery]) async {
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

    /// Returns when all of the events are published or returned to the queue. No other event is published meanwhile, so
    /// that each partition keeps its order.
    private func sendAll(_ taken: [JobDelivery]) async {
        var left = taken
        var isAway = false
        while true {
            left = left.filter(begin)
            if left.isEmpty { break }
            let (count, error) = await publish(left.map(\.record))
            JobDelivery.acknowledge(Array(left.prefix(count)))
            metrics.published.add(count)
            left.removeFirst(count)
            guard let error else { continue }
            if !isAway { log.warning("publishing to Redis failed; retrying", ["error": "\(error)"]) }
            isAway = true
            left = left.filter { $0.releaseOrReturn() }
            await Task.sleepUnlessCancelled(for: Self.rest)
        }
        if isAway { log.notice("publishing to Redis succeeded again, or the events were returned to the queue") }
    }

    /// True if an event is to be published now.
    private func begin(_ taken: JobDelivery) -> Bool {
        guard taken.claimOrReturn() else { return false }
        let age = Double(Timestamp.now.milliseconds - taken.record.timestamp) / 1000
        if taken.record.value == nil || (taken.record.timestamp >= 0 && age > maximumAge) {
            taken.acknowledge()
            metrics.stale.add()
            return false
        }
        return true
    }

    /// - Returns: the number of events published before the first failure, and its error.
    private func publish(_ records: [ConsumedRecord]) async -> (Int, RedisError?) {
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
