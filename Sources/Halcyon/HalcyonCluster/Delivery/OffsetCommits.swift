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
