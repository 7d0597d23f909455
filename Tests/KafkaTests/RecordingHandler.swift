import Kafka
import Threads

/// A handler that keeps what it is told and grants credit by a rule.
final class RecordingHandler: ConsumerHandler {
    /// What happened, in order; several handlers may share one journal.
    final class Journal: Sendable {
        let lines = Lock<[String]>([])
        func write(_ line: String) { lines.withLock { $0.append(line) } }
        var all: [String] { lines.withLock { $0 } }
    }

    private struct State {
        var records: [ConsumedRecord] = []
        var owned: Set<TopicPartition> = []
        var errors: [KafkaError] = []
    }

    private let state = Lock(State())
    private let name: String
    private let journal: Journal
    private let creditAtStart: Int
    private let renewsCredit: Bool
    private let whenRevoked:
        @Sendable (_ partitions: [TopicPartition], _ lost: Bool, _ consumer: Consumer) async -> Void

    /// - Parameters:
    ///   - creditAtStart: granted for each partition when it is assigned.
    ///   - renewsCredit: whether each record delivered is worth another one.
    init(
        _ name: String = "consumer", creditAtStart: Int = 100, renewsCredit: Bool = true, journal: Journal = Journal(),
        whenRevoked: @escaping @Sendable ([TopicPartition], Bool, Consumer) async -> Void = { _, _, _ in }
    ) {
        self.name = name
        self.journal = journal
        self.creditAtStart = creditAtStart
        self.renewsCredit = renewsCredit
        self.whenRevoked = whenRevoked
    }

    var records: [ConsumedRecord] { state.withLock { $0.records } }
    var owned: Set<TopicPartition> { state.withLock { $0.owned } }
    var errors: [KafkaError] { state.withLock { $0.errors } }
    /// The values, as text.
    var values: [String] { records.map { String(decoding: $0.value ?? [], as: UTF8.self) } }

    func assigned(_ partitions: [TopicPartition], to consumer: Consumer) {
        for partition in partitions.sorted() { journal.write("\(name) assigned \(partition.partition)") }
        state.withLock { $0.owned.formUnion(partitions) }
        if creditAtStart > 0 { for partition in partitions { consumer.grant(creditAtStart, to: partition) } }
    }

    func received(_ records: [ConsumedRecord], from consumer: Consumer) {
        state.withLock { $0.records += records }
        if renewsCredit, let first = records.first { consumer.grant(records.count, to: first.topicPartition) }
    }

    func revoked(_ partitions: [TopicPartition], lost: Bool, from consumer: Consumer) async {
        state.withLock { $0.owned.subtract(partitions) }
        await whenRevoked(partitions, lost, consumer)
        for partition in partitions.sorted() { journal.write("\(name) revoked \(partition.partition)") }
    }

    func failed(_ error: KafkaError, in consumer: Consumer) {
        state.withLock { $0.errors.append(error) }
    }
}
