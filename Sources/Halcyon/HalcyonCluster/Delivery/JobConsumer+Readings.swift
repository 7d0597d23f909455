import Telemetry

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
