import Telemetry

/// What is counted of transactions.
struct TransactionMetrics: Sendable {
    /// Transactions that were committed.
    let committed: Counter
    /// Transactions that were aborted and begun again.
    let aborted: Counter
    /// Producers that could do nothing more and were replaced.
    let replaced: Counter
    /// Jobs that ended in committed transactions.
    let jobs: Counter

    init(_ metrics: Metrics) {
        committed = metrics.counter(
            "halcyon_transactions_committed_total", help: "Transactions of events and offsets that were committed.")
        aborted = metrics.counter(
            "halcyon_transactions_aborted_total",
            help: "Transactions that were aborted; what they told is told in others, by whoever has the jobs then.")
        replaced = metrics.counter(
            "halcyon_transactional_producers_replaced_total",
            help: "Transactional producers that failed, or whose transaction had an unknown outcome.")
        jobs = metrics.counter(
            "halcyon_transaction_jobs_total", help: "Jobs that ended in committed transactions.")
    }
}
