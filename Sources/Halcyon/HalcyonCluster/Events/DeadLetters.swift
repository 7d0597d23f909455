import HalcyonModel
import Kafka

/// Puts messages that are no jobs aside, untouched, with what is wrong in headers.
public struct DeadLetters: Sendable {
    private let producer: Producer
    private let topic: String

    /// The producer stays its maker's, who closes it.
    public init(_ producer: Producer, topics: Topics) {
        self.producer = producer
        topic = topics.dead
    }

    /// Writes key, value and headers of `record` to the topic `dead` and waits until the brokers have them.
    /// - Throws: ``KafkaError`` when waiting cannot help.
    public func bury(_ record: ConsumedRecord, for failure: Failure) async throws(KafkaError) {
        let reasons = [
            RecordHeader("halcyon-code", failure.code.rawValue), RecordHeader("halcyon-message", failure.message),
            RecordHeader("halcyon-topic", record.topic), RecordHeader("halcyon-partition", "\(record.partition)"),
            RecordHeader("halcyon-offset", "\(record.offset)"),
        ]
        try await producer.sendPatiently(
            ProducerRecord(topic: topic, key: record.key, value: record.value, headers: record.headers + reasons))
    }
}
