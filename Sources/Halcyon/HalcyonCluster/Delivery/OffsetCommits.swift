import Kafka

/// Who commits what a consumer of jobs has ended.
public protocol OffsetCommits: Sendable {
    /// Commits what has ended and is not committed yet. Called from time to time, and before partitions go. When it fails, that is tried
    /// again the next time; once the partition is gone, its next owner does those jobs again.
    func commit(_ consumer: JobConsumer) async
}

/// The consumer's own commits: an offset follows the event that it was waiting for.
public struct DirectCommits: OffsetCommits {
    /// There is nothing to set.
    public init() {}

    /// Commits, and tries again without metadata when the brokers take none of such length.
    public func commit(_ consumer: JobConsumer) async {
        guard let member = consumer.consumer.withLock({ $0 }) else { return }
        let offsets = consumer.state.withLock { $0.ledger.uncommitted() }
        if offsets.isEmpty { return }
        do throws(KafkaError) {
            try await member.commit(offsets)
            consumer.state.withLock { $0.ledger.committed(offsets) }
        } catch  where error.code == .offsetMetadataTooLarge && offsets.values.contains(where: { !$0.metadata.isEmpty })
        {
            consumer.log.error(
                "the brokers take no such metadata of offsets: jobs that end out of order may be done again",
                ["limit": consumer.options.metadataLimit, "error": "\(error)"])
            consumer.state.withLock { $0.ledger.limitMetadata(to: 0) }
            await commit(consumer)
        } catch {
            consumer.log.warning("offsets not committed", ["error": "\(error)"])
        }
    }
}

/// What a transaction needs of the consumer whose jobs it ends.
extension JobConsumer {
    /// What the group knows this consumer by. To be asked before ``snapshot(ending:)``: a partition that has gone by then is left out
    /// of the snapshot, and one that goes later makes the brokers refuse this membership.
    func membership() async throws(KafkaError) -> GroupMembership {
        guard let consumer = consumer.withLock({ $0 }) else {
            throw KafkaError(code: .closed, message: "the consumer is closed")
        }
        return try await consumer.membership()
    }

    func snapshot(ending entries: [OffsetLedger.Entry]) -> OffsetLedger.Snapshot {
        state.withLock { $0.ledger.snapshot(ending: entries) }
    }

    var hasUncommitted: Bool { state.withLock { !$0.ledger.uncommitted().isEmpty } }

    func isCurrent(_ entry: OffsetLedger.Entry) -> Bool { state.withLock { $0.ledger.isCurrent(entry) } }

    /// These jobs have ended, and the brokers have the offsets that say so.
    func committed(_ offsets: [TopicPartition: GroupOffset], ending entries: [OffsetLedger.Entry]) {
        let grants = update { state in
            state.ledger.committed(offsets)
            state.ended += entries.count
            var grants: [TopicPartition: Credit] = [:]
            for entry in entries { grants[entry.partition, default: .none] += state.ledger.end(entry) }
            return grants
        }
        let consumer = consumer.withLock { $0 }
        for (partition, credit) in grants { consumer?.grant(credit, to: partition) }
    }

    /// Which offsets of these partitions have ended, by what the group has committed, transactions that are not over waited for.
    func endedOffsets(
        of partitions: Set<TopicPartition>
    ) async throws(KafkaError) -> [TopicPartition: (offset: GroupOffset, ended: OffsetMap)] {
        guard let consumer = consumer.withLock({ $0 }) else {
            throw KafkaError(code: .closed, message: "the consumer is closed")
        }
        return try await consumer.committed(Array(partitions)).mapValues { offset in
            (offset, OffsetMap(note: offset.metadata, at: offset.offset) ?? OffsetMap(from: offset.offset))
        }
    }

    /// The brokers refused metadata of this length.
    func refusedMetadata(ofLength length: Int) {
        state.withLock { $0.ledger.limitMetadata(to: length / 2) }
        log.error(
            "the brokers take no such metadata of offsets: jobs that end out of order wait for each other",
            ["limit": length / 2, "mend": "kafka.offsetMetadata: offset.metadata.max.bytes of the brokers"])
    }
}
