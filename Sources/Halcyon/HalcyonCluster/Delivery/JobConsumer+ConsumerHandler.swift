import Kafka

/// What Kafka tells a consumer of jobs.
extension JobConsumer: ConsumerHandler {
    /// Begins to take records of these partitions.
    public func assigned(_ partitions: [TopicPartition], to consumer: Consumer) {
        // The first jobs may end before `start` has heard of it.
        self.consumer.withLock { $0 = consumer }
        let assignments = state.withLock { state in
            state.isDraining ? [] : partitions.map { state.ledger.assign($0) }
        }
        assignment.open()
        guard !assignments.isEmpty else { return }
        tellPartitions()
        log.info("partitions assigned", ["partitions": partitions.sorted().map(\.description)])
        Task { await open(assignments, of: consumer) }
    }

    /// Takes records into the ledger and passes them on together.
    public func received(_ records: [ConsumedRecord], from consumer: Consumer) {
        let takings = state.withLock { state in
            records.map { state.ledger.take($0.offset, bytes: $0.bytes, of: $0.topicPartition) }
        }
        var taken: [TakenRecord] = []
        for (record, taking) in zip(records, takings) {
            switch taking {
            case .taken(let entry): taken.append(TakenRecord(record: record, entry: entry, consumer: self))
            case .hasEnded(let credit):
                metrics.skipped.add()
                consumer.grant(credit, to: record.topicPartition)
            case .notOurs: break
            }
        }
        if !taken.isEmpty { take(taken) }
    }

    /// Passes what is no record at the end of a partition, such as the marker of a transaction.
    public func reachedEnd(of partition: TopicPartition, at offset: Int64, in consumer: Consumer) {
        state.withLock { $0.ledger.reachEnd(offset, of: partition) }
    }

    /// Lets what has begun of these partitions end for a while, commits and forgets them.
    public func revoked(_ partitions: [TopicPartition], lost: Bool, from consumer: Consumer) async {
        if lost {
            recall(partitions)
        } else {
            await close(partitions, within: options.revocationPatience)
        }
        update { state in for partition in partitions { state.ledger.revoke(partition) } }
        tellPartitions()
        if !partitions.isEmpty {
            log.info("partitions revoked", ["partitions": partitions.sorted().map(\.description), "lost": lost])
        }
    }

    /// Logs it; a consumer that can do nothing more is told of.
    public func failed(_ error: KafkaError, in consumer: Consumer) {
        log.error("consuming", ["error": "\(error)"])
        if error.isFatal { onEnd(error) }
    }
}
