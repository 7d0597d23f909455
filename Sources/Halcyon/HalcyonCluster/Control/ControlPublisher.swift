import HalcyonModel
import HalcyonWire
import Kafka

/// Tells all workers something.
public struct ControlPublisher: Sendable {
    private let producer: Producer
    private let topic: String

    /// The producer stays its maker's, who closes it.
    public init(_ producer: Producer, topics: Topics) {
        self.producer = producer
        topic = topics.control
    }

    /// Writes a message and waits until the brokers have it.
    /// - Throws: ``KafkaError``.
    public func publish(_ message: ControlMessage) async throws(KafkaError) {
        try await producer.send(ProducerRecord(topic: topic, value: message.json))
    }
}
