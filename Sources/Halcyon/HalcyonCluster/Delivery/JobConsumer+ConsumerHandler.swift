import Kafka
import Telemetry

/// The callbacks of the Kafka consumer.
extension JobConsumer: ConsumerHandler {
    /// Starts to receive the records of assigned partitions.
    public func assigned(_ partitions: [TopicPartition], to consumer: Consumer) {
        // The first jobs may end before `start` returns.
        self.consumer.withLock { $0 = consumer }
        let assignments = state.withLock { state in
            state.isDraining ? [] : partitions.map { state.ledger.assign($0) }
        }
        assignment.signal()
        guard !assignments.isEmpty else { return }
        reportPartitions()
        log.info("partitions assigned", ["partitions": partitions.sorted().map(\.description)])
        Task { await open(assignments, of: consumer) }
    }

    /// Adds records to the tracker and passes those to be processed now on as one batch.
    public func received(_ records: [ConsumedRecord], from consumer: Consumer) {
        guard let partition = records.first?.topicPartition else { return }
        let flows = records.map(flow)
        let (admitted, skipped, more, start) = state.withLock { state in
            var more: [TopicPartition: Credit] = [:]
            if !state.looksAhead, flows.contains(where: { $0.name != nil }) {
                state.looksAhead = true
                more = state.ledger.widen(toRecords: options.lookahead)
            }
            var (taken, skipped): ([JobDelivery], [Credit]) = ([], [])
            // The commit, if the last record lies below it.
            var start: Int64?
            for (record, flow) in zip(records, flows) {
                let acceptance = state.ledger.receive(
                    record.offset, bytes: record.bytes, of: partition,
                    logEnd: consumer.ends(of: [partition])[partition] ?? -1)
                start = nil
                switch acceptance {
                case .taken(let entry):
                    taken.append(JobDelivery(record: record, flow: flow, entry: entry, consumer: self))
                case .hasEnded(let credit): skipped.append(credit)
                case .precedesCommit(let commit, let credit):
                    skipped.append(credit)
                    start = commit
                case .notOurs: break
                }
            }
            let admitted = taken.first.flatMap { state.queues[$0.entry.assignment]?.receive(taken) }
            return (admitted ?? [], skipped, more, start)
        }
        for (partition, credit) in more { consumer.addCredit(credit, to: partition) }
        metrics.skipped.add(skipped.count)
        for credit in skipped { consumer.addCredit(credit, to: partition) }
        if let start {
            log.warning(
                "reading started below the committed offset; continuing there",
                ["partition": partition.description, "offset": records[0].offset, "committed": start])
            consumer.seek(partition, to: start)
        }
        if !admitted.isEmpty { receive(admitted) }
    }

    /// Passes offsets at the end of a partition that do not belong to records, such as transaction markers.
    public func reachedEnd(of partition: TopicPartition, at offset: Int64, in consumer: Consumer) {
        state.withLock { $0.ledger.reachEnd(offset, of: partition) }
    }

    /// Waits for jobs of revoked partitions that have begun, up to the timeout, commits, and stops tracking the
    /// partitions.
    public func revoked(_ partitions: [TopicPartition], lost: Bool, from consumer: Consumer) async {
        if lost {
            recall(partitions)
        } else {
            await close(partitions, within: options.revocationTimeout)
        }
        update { state in
            _ = state.dropWaiting(of: partitions)
            for partition in partitions { state.ledger.revoke(partition) }
        }
        reportPartitions()
        if !partitions.isEmpty {
            log.info("partitions revoked", ["partitions": partitions.sorted().map(\.description), "lost": lost])
        }
    }

    /// Logs a consumer error, and reports one that the consumer cannot recover from.
    public func failed(_ error: KafkaError, in consumer: Consumer) {
        log.error("Kafka consumer error", ["error": "\(error)"])
        if error.isFatal { onEnd(error) }
    }
}

extension JobConsumer {
    /// Registers the metrics that are computed when they are read.
    func addReadings(to metrics: Metrics) {
        let prefix = things == "jobs" ? "halcyon" : "halcyon_\(things)"
        metrics.observable(
            .gauge, "\(prefix)_committed_offset_lag_offsets",
            help: "Offsets from the first record in flight to the last one received, maximum over all partitions."
        ) { [weak self] in
            Double(self?.state.withLock { $0.ledger.spans.values.map(\.count).max() } ?? 0)
        }
        metrics.observable(
            .gauge, "\(prefix)_committed_offset_held_seconds",
            help: "Seconds that a record which is due has held back the offset to commit, maximum over all partitions."
        ) { [weak self] in
            self?.state.withLock { $0.heldBackSince }.map { max(0, $0.duration(to: .now) / .seconds(1)) } ?? 0
        }
        metrics.observable(
            .gauge, "\(prefix)_window_fill_ratio",
            help:
                "Records in flight as a fraction of the window, maximum over all partitions; up to 2 with several tenants."
        ) { [weak self] in
            guard let self else { return 0 }
            return Double(state.withLock { $0.queues.values.map(\.inFlight).max() ?? 0 }) / Double(options.window)
        }
        metrics.observable(
            .gauge, "\(prefix)_lookahead_records",
            help: "Records that have been received and wait for others in their partition."
        ) { [weak self] in
            Double(self?.state.withLock { $0.queues.values.reduce(0) { $0 + $1.count } } ?? 0)
        }
        if things == "jobs" {
            metrics.observable(
                .gauge, "halcyon_paused_records",
                help: "Records that have been received and wait because their lane or tenant is paused."
            ) { [weak self] in
                Double(self?.state.withLock { $0.queues.values.reduce(0) { $0 + $1.held.count } } ?? 0)
            }
        }
        let delayed = options.delayed
        metrics.observable(
            .gauge, "\(prefix)_lag_offsets",
            help: "Incomplete offsets, except those of delayed records, up to the latest known high watermarks."
        ) { [weak self] in Double(self?.lag { !delayed.contains($0) } ?? 0) }
        if !delayed.isEmpty {
            metrics.observable(
                .gauge, "\(prefix)_delayed_offsets",
                help: "Incomplete offsets of retry and delay topics, whose records wait until they are due."
            ) { [weak self] in Double(self?.lag { delayed.contains($0) } ?? 0) }
        }
    }

    /// The number of records in flight or waiting at the brokers in these topics. An idle partition whose end is
    /// unknown counts as 0.
    private func lag(in isIncluded: (_ topic: String) -> Bool) -> Int64 {
        let spans = state.withLock { $0.ledger.spans }.filter { isIncluded($0.key.topic) }
        let ends = consumer.withLock { $0 }?.ends(of: Array(spans.keys)) ?? [:]
        return spans.reduce(0) { $0 + max(0, max($1.value.upperBound, ends[$1.key] ?? 0) - $1.value.lowerBound) }
    }
}
