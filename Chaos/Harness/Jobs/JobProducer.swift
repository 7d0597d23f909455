import Kafka
import Threads

/// A producer of jobs that is not stopped by what befalls the broker: where librdkafka can do nothing more, it begins anew.
///
/// An idempotent producer ends when a broker that was killed forgot what it had acknowledged. What was under way then may lie in its topic
/// or not; it is sent again, as every producer would, and ``Ledger/unsure`` says how often that was.
final class JobProducer: Sendable {
    private let properties: [String: String]
    private let ledger: Ledger
    private let producer: Lock<Producer>
    /// Producers that fail in a row before the run itself is given up.
    private static let attempts = 5

    init(brokers: String, _ ledger: Ledger) throws {
        properties = [
            "bootstrap.servers": brokers, "acks": "all", "enable.idempotence": "true", "linger.ms": "5",
            // A broker may be away for long on a busy machine; who gives up would not know whether the job was accepted.
            "message.timeout.ms": "600000",
        ]
        self.ledger = ledger
        producer = Lock(try Producer(properties: properties))
    }

    /// Sends a record until it is acknowledged.
    /// - Throws: ``KafkaError`` when several producers in a row could not.
    func send(_ record: ProducerRecord) async throws -> Delivery {
        try await attempt { producer throws(KafkaError) in try await producer.send(record) }
    }

    /// Has the producer that serves now do something, and another one do it again where that one could not.
    /// - Throws: what the last of several threw.
    func attempt<Value: Sendable>(
        _ work: @Sendable (Producer) async throws(KafkaError) -> Value
    ) async throws -> Value {
        for _ in 1..<Self.attempts {
            let producer = producer.withLock { $0 }
            do {
                return try await work(producer)
            } catch {
                ledger.noteUnsure()
                try await replace(producer, after: error)
            }
        }
        return try await work(producer.withLock { $0 })
    }

    /// Makes a new one, unless somebody else has done so.
    private func replace(_ failed: Producer, after error: KafkaError) async throws {
        let isFirst = try producer.withLock { producer in
            guard producer === failed else { return false }
            producer = try Producer(properties: properties)
            return true
        }
        guard isFirst else { return }
        say("the producer of jobs begins anew: \(error)")
        await failed.close(flushingFor: .zero)
    }

    func close() async { await producer.withLock { $0 }.close() }
}
