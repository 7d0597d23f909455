import HalcyonModel
import HalcyonWire
import Kafka

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
