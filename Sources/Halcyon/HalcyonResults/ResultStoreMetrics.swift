import Telemetry

/// The counters of a result store.
struct ResultStoreMetrics: Sendable {
    let hits: Counter
    let misses: Counter
    /// Objects that were truncated, altered or not ours.
    let rejected: Counter
    let written: Counter
    let writtenBytes: Counter
    let readBytes: Counter
    /// Results that were not written because a purge had removed them.
    let fenced: Counter
    private let queued: Gauge
    private let (swept, kept): ([Counter], [Gauge])

    init(_ metrics: Metrics) {
        func reads(_ result: String) -> Counter {
            metrics.counter(
                "halcyon_result_store_reads_total",
                help: "Lookups in the result store, by result: hit, miss, or an object that was rejected.",
                labels: ["result": result])
        }
        (hits, misses, rejected) = (reads("hit"), reads("miss"), reads("rejected"))
        func bytes(_ direction: String) -> Counter {
            metrics.counter(
                "halcyon_result_store_bytes_total", help: "Bytes of results read from and written to the result store.",
                labels: ["direction": direction])
        }
        (readBytes, writtenBytes) = (bytes("read"), bytes("written"))
        written = metrics.counter(
            "halcyon_result_store_written_total", help: "Results written to the result store.")
        fenced = metrics.counter(
            "halcyon_result_store_fenced_total",
            help: "Results that were not written because they had been purged or replaced in the meantime.")
        queued = metrics.gauge(
            "halcyon_result_store_queued_bytes", help: "Bytes of results that wait to be written to the result store.")
        swept = ["expired", "evicted", "purged"].map { reason in
            metrics.counter(
                "halcyon_result_store_swept_total", help: "Results that the sweeper has deleted, by reason.",
                labels: ["reason": reason])
        }
        kept = [
            metrics.gauge("halcyon_result_store_results", help: "Results in the folder after its last sweep."),
            metrics.gauge("halcyon_result_store_size_bytes", help: "Bytes of these results."),
        ]
    }

    /// Sets the size of the queue.
    func queued(_ bytes: Int) { queued.set(Double(bytes)) }

    /// Adds a sweep.
    func swept(_ report: SweepReport) {
        for (counter, count) in zip(swept, [report.expired, report.evicted, report.purged]) { counter.add(count) }
        for (gauge, value) in zip(kept, [report.results, report.bytes]) { gauge.set(Double(value)) }
    }
}
