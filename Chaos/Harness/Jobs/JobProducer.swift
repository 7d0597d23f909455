import Concurrency
import Kafka

/// A producer of jobs that survives broker faults. After a fatal librdkafka error it creates a new producer.
///
/// An idempotent producer fails fatally when a broker that was killed has lost acknowledged records. Records in flight
/// at that time may or may not be in the topic. They are sent again, as any producer would do, and ``Ledger/unsure``
/// counts them.
final class JobProducer: Sendable {
    private let properties: [String: String]
    private let ledger: Ledger
    private let state: Lock<(producer: Producer, isAborted: Bool)>
    /// The number of consecutive producer failures after which the run fails.
    private static let attempts = 5

    init(brokers: String, _ ledger: Ledger) throws {
        properties = [
            "bootstrap.servers": brokers, "acks": "all", "enable.idempotence": "true", "linger.ms": "5",
            // A broker may be unavailable for long on a busy machine. After a timeout it would be unknown whether the
            // job was accepted.
            "message.timeout.ms": "600000",
        ]
        self.ledger = ledger
        state = Lock((try Producer(properties: properties), false))
    }

    /// Sends a record until it is acknowledged.
    /// - Throws: ``KafkaError`` if several producers in a row failed.
    func send(_ record: ProducerRecord) async throws -> Delivery {
        try await attempt { producer throws(KafkaError) in try await producer.send(record) }
    }

    /// Performs an operation with the current producer, and retries it with a new producer after a failure.
    /// - Throws: The error of the last attempt.
    func attempt<Value: Sendable>(
        _ work: @Sendable (Producer) async throws(KafkaError) -> Value
    ) async throws -> Value {
        for _ in 1..<Self.attempts {
            let producer = state.withLock { $0.producer }
            do {
                return try await work(producer)
            } catch {
                ledger.noteUnsure()
                try await replace(producer, after: error)
            }
        }
        return try await work(state.withLock { $0.producer })
    }

    /// Replaces a failed producer, unless another task has done so.
    /// - Throws: `error` after ``abort()``.
    private func replace(_ failed: Producer, after error: KafkaError) async throws {
        let isFirst = try state.withLock { state in
            if state.isAborted { throw error }
            guard state.producer === failed else { return false }
            state.producer = try Producer(properties: properties)
            return true
        }
        guard isFirst else { return }
        say("job producer failed, creating a new one: \(error)")
        await failed.close(flushingFor: .zero)
    }

    /// True after ``abort()``.
    var isAborted: Bool { state.withLock { $0.isAborted } }

    /// Makes all operations fail, now and later, because the brokers will not be available again.
    func abort() async {
        let producer = state.withLock { state in
            state.isAborted = true
            return state.producer
        }
        await producer.close(flushingFor: .zero)
    }

    func close() async { await state.withLock { $0.producer }.close() }
}
