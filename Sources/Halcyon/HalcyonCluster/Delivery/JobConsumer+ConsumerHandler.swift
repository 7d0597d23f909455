import Kafka
import Telemetry

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

extension JobConsumer {
    /// Tells how far its partitions are done, when somebody asks.
    func addReadings(to metrics: Metrics) {
        let prefix = things == "jobs" ? "halcyon" : "halcyon_\(things)"
        metrics.reading(
            .gauge, "\(prefix)_watermark_lag_offsets",
            help: "Offsets from the first that has not ended to the last that was taken, of the partition with most."
        ) { [weak self] in
            Double(self?.state.withLock { $0.ledger.spans.values.map(\.count).max() } ?? 0)
        }
        metrics.reading(
            .gauge, "\(prefix)_watermark_held_seconds",
            help: "Seconds for which the first offset that has not ended is the first, of the partition with most."
        ) { [weak self] in
            self?.state.withLock { $0.ledger.heldSince }.map { $0.duration(to: .now) / .seconds(1) } ?? 0
        }
        metrics.reading(
            .gauge, "\(prefix)_window_fill_ratio",
            help: "Part of its window that is under way, from 0 to 1, of the partition with most."
        ) { [weak self] in
            guard let self else { return 0 }
            return Double(state.withLock { $0.ledger.mostUnderWay }) / Double(options.window)
        }
        metrics.reading(
            .gauge, "\(prefix)_lag_offsets",
            help: "Offsets of this consumer's partitions that have not ended, up to the newest that brokers told of."
        ) { [weak self] in Double(self?.lag ?? 0) }
    }

    /// What is under way, and what waits at the brokers; an idle partition of which none has told the end counts for nothing.
    private var lag: Int64 {
        let spans = state.withLock { $0.ledger.spans }
        let ends = consumer.withLock { $0 }?.ends(of: Array(spans.keys)) ?? [:]
        return spans.reduce(0) { $0 + max(0, max($1.value.upperBound, ends[$1.key] ?? 0) - $1.value.lowerBound) }
    }
}
