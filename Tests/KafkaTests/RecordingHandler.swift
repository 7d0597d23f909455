import Concurrency
import Kafka

/// A handler that records its calls and grants credit by a rule.
final class RecordingHandler: ConsumerHandler {
    /// A log of assignments and revocations, in order. Several handlers can share one journal.
    final class Journal: Sendable {
        let lines = Lock<[String]>([])
        func write(_ line: String) { lines.withLock { $0.append(line) } }
        var all: [String] { lines.withLock { $0 } }
    }

    private struct State {
        var records: [ConsumedRecord] = []
        var owned: Set<TopicPartition> = []
        var errors: [KafkaError] = []
        /// The last reported end of each partition.
        var ends: [TopicPartition: Int64] = [:]
        /// One past the newest record of each partition since it was assigned.
        var next: [TopicPartition: GroupOffset] = [:]
    }

    private let state = Lock(State())
    private let name: String
    private let journal: Journal
    private let creditAtStart: Int
    private let renewsCredit: Bool
    private let commitsWhenRevoked: Bool
    private let whenRevoked:
        @Sendable (_ partitions: [TopicPartition], _ lost: Bool, _ consumer: Consumer) async -> Void

    /// - Parameters:
    ///   - creditAtStart: the credit granted for each partition when it is assigned.
    ///   - renewsCredit: whether each delivered record grants credit for another one.
    ///   - commitsWhenRevoked: whether it commits all received records, if the broker accepts that.
    init(
        _ name: String = "consumer", creditAtStart: Int = 100, renewsCredit: Bool = true,
        commitsWhenRevoked: Bool = false, journal: Journal = Journal(),
        whenRevoked: @escaping @Sendable ([TopicPartition], Bool, Consumer) async -> Void = { _, _, _ in }
    ) {
        self.name = name
        self.journal = journal
        self.creditAtStart = creditAtStart
        self.renewsCredit = renewsCredit
        self.commitsWhenRevoked = commitsWhenRevoked
        self.whenRevoked = whenRevoked
    }

    var records: [ConsumedRecord] { state.withLock { $0.records } }
    var owned: Set<TopicPartition> { state.withLock { $0.owned } }
    var errors: [KafkaError] { state.withLock { $0.errors } }
    var ends: [TopicPartition: Int64] { state.withLock { $0.ends } }
    /// The values of all records, as text.
    var values: [String] { records.map { String(decoding: $0.value ?? [], as: UTF8.self) } }

    func assigned(_ partitions: [TopicPartition], to consumer: Consumer) {
        for partition in partitions.sorted() { journal.write("\(name) assigned \(partition.partition)") }
        state.withLock { state in
            state.owned.formUnion(partitions)
            for partition in partitions { state.next[partition] = nil }
        }
        if creditAtStart > 0 {
            for partition in partitions { consumer.addCredit(.records(creditAtStart), to: partition) }
        }
    }

    func received(_ records: [ConsumedRecord], from consumer: Consumer) {
        state.withLock { state in
            state.records += records
            if let last = records.last { state.next[last.topicPartition] = GroupOffset(last.offset + 1) }
        }
        if renewsCredit, let first = records.first {
            consumer.addCredit(.records(records.count), to: first.topicPartition)
        }
    }

    func reachedEnd(of partition: TopicPartition, at offset: Int64, in consumer: Consumer) {
        state.withLock { $0.ends[partition] = offset }
    }

    func revoked(_ partitions: [TopicPartition], lost: Bool, from consumer: Consumer) async {
        let next = state.withLock { state in
            state.owned.subtract(partitions)
            return state.next.filter { partitions.contains($0.key) }
        }
        if commitsWhenRevoked { try? await consumer.commit(next) }
        await whenRevoked(partitions, lost, consumer)
        for partition in partitions.sorted() { journal.write("\(name) revoked \(partition.partition)") }
    }

    func failed(_ error: KafkaError, in consumer: Consumer) {
        state.withLock { $0.errors.append(error) }
    }
}

extension Credit {
    /// Creates credit for this number of records of any size.
    static func records(_ count: Int) -> Credit { Credit(records: count, bytes: count << 30) }
}
