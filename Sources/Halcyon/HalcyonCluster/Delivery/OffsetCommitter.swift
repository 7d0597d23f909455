import Kafka

/// Commits the offsets of jobs that a consumer has ended.
public protocol OffsetCommitter: Sendable {
    /// Commits offsets of ended jobs that are not committed yet. It is called periodically, and before partitions are
    /// revoked. A failed commit is repeated by the next call. If the partition is revoked first, its next owner repeats
    /// the jobs.
    func commit(_ consumer: JobConsumer) async
}

/// Commits offsets with the consumer, independently of the publishing of events.
public struct AsyncOffsetCommitter: OffsetCommitter {
    /// Creates a committer.
    public init() {}

    /// Commits offsets, and repeats the commit without metadata if the brokers reject its size.
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
                "brokers rejected commit metadata as too large; jobs that end out of order may be redelivered",
                ["limit": consumer.options.metadataLimit, "error": "\(error)"])
            consumer.state.withLock { $0.ledger.limitMetadata(to: 0) }
            await commit(consumer)
        } catch {
            consumer.log.warning("committing offsets failed; retrying", ["error": "\(error)"])
        }
    }
}

/// The operations that a transaction needs of the consumer whose jobs it ends.
extension JobConsumer {
    /// The consumer's membership in the group. Read it before ``snapshot(ending:)``: partitions that were revoked by
    /// then are missing from the snapshot, and for partitions that are revoked later the brokers reject this
    /// membership.
    func membership() async throws(KafkaError) -> GroupMembership {
        guard let consumer = consumer.withLock({ $0 }) else {
            throw KafkaError(code: .closed, message: "the consumer is closed")
        }
        return try await consumer.membership()
    }

    func snapshot(ending entries: [OffsetTracker.Entry]) -> OffsetTracker.Snapshot {
        state.withLock { $0.ledger.snapshot(ending: entries) }
    }

    var hasUncommitted: Bool { state.withLock { !$0.ledger.uncommitted().isEmpty } }

    func isCurrent(_ entry: OffsetTracker.Entry) -> Bool { state.withLock { $0.ledger.isCurrent(entry) } }

    /// The ended offsets of these partitions according to the group's commits. It waits for pending transactions.
    func endedOffsets(
        of partitions: Set<TopicPartition>
    ) async throws(KafkaError) -> [TopicPartition: (offset: GroupOffset, ended: CompletedRanges)] {
        guard let consumer = consumer.withLock({ $0 }) else {
            throw KafkaError(code: .closed, message: "the consumer is closed")
        }
        return try await consumer.committed(Array(partitions)).mapValues { offset in
            (
                offset,
                CompletedRanges(commitMetadata: offset.metadata, at: offset.offset)
                    ?? CompletedRanges(from: offset.offset)
            )
        }
    }

    /// Lowers the metadata limit after the brokers rejected metadata of this length.
    func refusedMetadata(ofLength length: Int) {
        state.withLock { $0.ledger.limitMetadata(to: length / 2) }
        log.error(
            "brokers rejected commit metadata as too large; jobs that end out of order wait for each other",
            ["limit": length / 2, "mend": "set kafka.offsetMetadata to offset.metadata.max.bytes of the brokers"])
    }
}
