import Threads

/// What was sent, what was told and what went wrong, kept outside of the system that it is about.
public final class Ledger: Sendable {
    private struct Books {
        var sent: [SentJob] = []
        var unsure = 0
        var ends: [TerminalEvent] = []
        var ended: Set<String> = []
        /// Of the records that were sent, how many have ended.
        var closed = 0
        var known: Set<String> = []
        var faults: [FaultRecord] = []
        var drains: [Drain] = []
    }

    /// A worker that was asked to stop.
    public struct Drain: Sendable {
        /// From the signal to its end, in seconds.
        public var took: Double
        /// Whether it ended in order, with nothing cut short.
        public var isClean: Bool
    }

    private let books = Lock(Books())
    private let start = ContinuousClock.now

    /// An empty one, whose clock begins.
    public init() {}

    /// Seconds since the run began.
    public var now: Double { start.duration(to: .now) / .seconds(1) }

    func add(_ job: SentJob) {
        books.withLock { books in
            books.sent.append(job)
            books.known.insert(job.place)
            if books.ended.contains(job.place) { books.closed += 1 }
        }
    }

    /// A record may lie in its topic, and nobody was told where.
    func noteUnsure() { books.withLock { $0.unsure += 1 } }

    func add(_ event: TerminalEvent) {
        books.withLock { books in
            books.ends.append(event)
            let isFirst = books.ended.insert(event.place).inserted
            // The event may be read before the acknowledgement of its job.
            if isFirst && books.known.contains(event.place) { books.closed += 1 }
        }
    }

    func add(_ fault: FaultRecord) { books.withLock { $0.faults.append(fault) } }
    func add(_ drain: Drain) { books.withLock { $0.drains.append(drain) } }

    /// Records that were sent.
    public var count: Int { books.withLock { $0.sent.count } }
    /// Records that have not ended.
    public var open: Int { books.withLock { $0.sent.count - $0.closed } }
    /// All that was sent.
    public var sent: [SentJob] { books.withLock { $0.sent } }
    /// Records that were sent and perhaps not taken, besides those that were.
    public var unsure: Int { books.withLock { $0.unsure } }
    /// All that was told, in the order of reading.
    public var ends: [TerminalEvent] { books.withLock { $0.ends } }
    /// All faults.
    public var faults: [FaultRecord] { books.withLock { $0.faults } }
    /// Workers that were asked to stop.
    public var drains: [Drain] { books.withLock { $0.drains } }
}
