import Concurrency

/// A record of jobs sent, events published and faults injected, stored outside of the system under test.
public final class Ledger: Sendable {
    private struct LedgerExport {
        var sent: [SentJob] = []
        var unsure = 0
        var ends: [TerminalEvent] = []
        var ended: Set<String> = []
        var completions: [BatchCompletion] = []
        /// The number of acknowledged records that have ended.
        var closed = 0
        var known: Set<String> = []
        var faults: [FaultRecord] = []
        var drains: [Drain] = []
    }

    /// The graceful shutdown of a worker.
    public struct Drain: Sendable {
        /// The time from the signal to the exit, in seconds.
        public var took: Double
        /// True if the worker exited cleanly and no work was interrupted.
        public var isClean: Bool
    }

    private let books = Lock(LedgerExport())
    private let start = ContinuousClock.now

    /// Creates an empty ledger and starts its clock.
    public init() {}

    /// The time since the start of the run, in seconds.
    public var now: Double { start.duration(to: .now) / .seconds(1) }

    func add(_ job: SentJob) {
        books.withLock { books in
            books.sent.append(job)
            books.known.insert(job.place)
            if books.ended.contains(job.place) { books.closed += 1 }
        }
    }

    /// Counts a record that may have been accepted, but was never acknowledged.
    func noteUnsure() { books.withLock { $0.unsure += 1 } }

    func add(_ event: TerminalEvent) {
        books.withLock { books in
            books.ends.append(event)
            let isFirst = books.ended.insert(event.place).inserted
            // The event may be read before the job is acknowledged.
            if isFirst && books.known.contains(event.place) { books.closed += 1 }
        }
    }

    func add(_ completion: BatchCompletion) { books.withLock { $0.completions.append(completion) } }
    func add(_ fault: FaultRecord) { books.withLock { $0.faults.append(fault) } }
    func add(_ drain: Drain) { books.withLock { $0.drains.append(drain) } }

    /// The number of acknowledged records.
    public var count: Int { books.withLock { $0.sent.count } }
    /// The number of acknowledged records without a terminal event.
    public var open: Int { books.withLock { $0.sent.count - $0.closed } }
    /// All acknowledged records.
    public var sent: [SentJob] { books.withLock { $0.sent } }
    /// The number of other records that were sent and may have been accepted.
    public var unsure: Int { books.withLock { $0.unsure } }
    /// All terminal events in the order of reading.
    public var ends: [TerminalEvent] { books.withLock { $0.ends } }
    /// All completion events of batches in the order of reading.
    public var completions: [BatchCompletion] { books.withLock { $0.completions } }
    /// All faults that were injected.
    public var faults: [FaultRecord] { books.withLock { $0.faults } }
    /// The graceful shutdowns of workers.
    public var drains: [Drain] { books.withLock { $0.drains } }
}
