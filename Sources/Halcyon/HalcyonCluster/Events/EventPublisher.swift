import HalcyonModel
import HalcyonWire
import Kafka

/// Writes events to their topic.
public struct EventPublisher: Sendable {
    private let producer: Producer
    private let topic: String

    /// The producer stays its maker's, who closes it.
    public init(_ producer: Producer, topics: Topics) {
        self.producer = producer
        topic = topics.events
    }

    /// Publishes an event and waits until the brokers have it. While they are away it waits on: an event is never given up.
    /// - Throws: ``KafkaError`` when waiting cannot help: the event is too large, or the producer is closed.
    public func publish(_ event: Event) async throws(KafkaError) {
        let record = ProducerRecord(
            topic: topic, key: Array(event.jobID.utf8), value: event.json, headers: Self.headers)
        try await producer.sendPatiently(record)
    }

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
