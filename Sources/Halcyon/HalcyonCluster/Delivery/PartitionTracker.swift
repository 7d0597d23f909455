import Kafka

/// The jobs of one partition during one assignment. A pure value.
struct PartitionTracker {
    /// A job that was received, and neither ended nor returned to the queue.
    private struct Job {
        let bytes: Int
        var hasBegun = false
        /// The time until which the job waits for its start or its next attempt; nil if it has not waited.
        var due: ContinuousClock.Instant?
        /// The callback that asks the owner of the job to return it to the queue.
        var recall: (@Sendable () -> Void)?
    }

    /// The number of the assignment. Jobs that were received during earlier assignments are ignored.
    let generation: Int
    /// The offset that the brokers have stored, once it is known.
    private var committed: GroupOffset?
    /// The offsets that earlier owners completed.
    private var map: CompletedRanges?
    private var committedOffset: CommittedOffset?
    /// The highest offset of a completed job, including those of earlier owners. Higher offsets can only be complete if
    /// they have no record.
    private var highestEnded: Int64 = -1
    private var jobs: [Int64: Job] = [:]
    /// The number of jobs that have begun and not ended.
    private(set) var begun = 0
    /// The credit of records that ended since the last grant.
    private var returned = Credit.none
    /// True if the partition is about to be revoked. No more jobs are begun.
    private var isClosing = false
    /// The time since which the lowest incomplete offset is the lowest.
    private var lowestSince: ContinuousClock.Instant?

    init(generation: Int) { self.generation = generation }

    // MARK: Records

    /// True if records may be received.
    private(set) var isOpen = false

    /// Sets the committed offset, before the first record is received.
    mutating func open(_ committed: GroupOffset?, _ map: CompletedRanges?) {
        isOpen = true
        self.committed = committed
        self.map = map
    }

    /// Receives a record.
    /// - Parameter logEnd: the high watermark of the partition; -1 if it is unknown. It is read only if the first
    ///   record lies below the commit.
    mutating func receive(
        _ offset: Int64, bytes: Int, logEnd: () -> Int64, at now: ContinuousClock.Instant
    ) -> CommittedOffset.Acceptance {
        if isClosing { return .cameBefore }
        if committedOffset == nil { start(at: offset, logEnd: logEnd) }
        guard let taking = committedOffset?.receive(offset) else { return .cameBefore }
        switch taking {
        case .taken:
            jobs[offset] = Job(bytes: bytes)
            if committedOffset?.base == offset { lowestSince = now }
        case .hasEnded, .precedesStart: returned += Credit(records: 1, bytes: bytes)
        case .cameBefore: break
        }
        return taking
    }

    /// Records that all records below this offset were received.
    mutating func reachEnd(_ offset: Int64) {
        // Records that arrived while the partition is closing were not accepted.
        if isClosing { return }
        if committedOffset == nil {
            // Without a commit, or with one of other records, the first record tells where reading started.
            guard let committed, committed.offset <= offset else { return }
            start(at: committed.offset, logEnd: { offset })
        }
        committedOffset?.reachEnd(offset)
    }

    private mutating func start(at offset: Int64, logEnd: () -> Int64) {
        // A log that ends below the committed offset was created again, and the commit is ignored. Otherwise all
        // records below the commit are complete, even if the partition is read from an earlier offset: librdkafka may
        // take offsets that wait for a transaction for missing ones.
        if let known = committed, known.offset <= offset || known.offset <= logEnd() {
            committedOffset = CommittedOffset(startingAt: max(offset, known.offset), map: map)
            if let last = map?.runs.last { highestEnded = last.upperBound - 1 }
        } else {
            committedOffset = CommittedOffset(startingAt: offset)
            committed = GroupOffset(offset)
        }
        map = nil
    }

    /// Begins a job. Returns true if it may be processed or has begun before, and false if it must be returned to the
    /// queue.
    mutating func begin(_ offset: Int64) -> Bool {
        guard let job = jobs[offset] else { return false }
        if job.hasBegun { return true }
        if isClosing { return false }
        jobs[offset] = Job(bytes: job.bytes, hasBegun: true, due: job.due)
        begun += 1
        return true
    }

    /// Resets a job to the state before it began.
    /// - Parameter due: The time until which the job waits; nil if it does not.
    /// - Returns: false if it must be returned to the queue now.
    mutating func release(_ offset: Int64, until due: ContinuousClock.Instant?) -> Bool {
        guard let job = jobs[offset], !isClosing else { return false }
        if job.hasBegun { begun -= 1 }
        jobs[offset] = Job(bytes: job.bytes, due: due ?? job.due)
        return true
    }

    /// Sets the callback for the case that the job must be returned to the queue before it has begun.
    /// - Returns: true if that is the case already.
    mutating func onRevocation(_ offset: Int64, _ body: @escaping @Sendable () -> Void) -> Bool {
        guard jobs[offset]?.hasBegun == false else { return false }
        if isClosing { return true }
        jobs[offset]?.recall = body
        return false
    }

    /// Stops accepting and beginning jobs.
    /// - Returns: the callbacks of jobs that have not begun.
    mutating func close() -> [@Sendable () -> Void] {
        isClosing = true
        let waiting = jobs.filter { !$0.value.hasBegun }
        for offset in waiting.keys { jobs[offset]?.recall = nil }
        return waiting.values.compactMap(\.recall)
    }

    mutating func end(_ offset: Int64, at now: ContinuousClock.Instant) {
        guard let job = leave(offset) else { return }
        if committedOffset?.end(offset) == true { lowestSince = now }
        highestEnded = max(highestEnded, offset)
        returned += Credit(records: 1, bytes: job.bytes)
    }

    mutating func returnToQueue(_ offset: Int64) { _ = leave(offset) }

    private mutating func leave(_ offset: Int64) -> Job? {
        let job = jobs.removeValue(forKey: offset)
        if job?.hasBegun == true { begun -= 1 }
        return job
    }

    /// The credit to grant now. It is granted in portions of a quarter of the window. A partition whose commit metadata
    /// is almost full gets none until the metadata shrinks or no job is in flight.
    mutating func credit(window: Credit, metadataLimit limit: Int) -> Credit {
        let isParcel = returned.records * 4 >= window.records || returned.bytes * 4 >= window.bytes
        guard !isClosing, jobs.isEmpty || (isParcel && !isCrowded(limit)) else { return .none }
        defer { returned = .none }
        return returned
    }

    /// True if the commit metadata takes at least three quarters of its limit.
    private func isCrowded(_ limit: Int) -> Bool {
        guard limit > 0, let commitMetadata = committedOffset?.ended.commitMetadata(limit: limit) else { return false }
        return commitMetadata.untracked > 0 || commitMetadata.text.utf8.count * 4 >= limit * 3
    }

    // MARK: Offsets

    /// The offset from which records are processed; nil before the first record.
    var start: Int64? { committedOffset?.start }

    /// The range from the lowest incomplete offset to one past the highest received; nil before the first record.
    var span: Range<Int64>? { committedOffset.map { $0.base..<$0.next } }

    /// The time since which the lowest incomplete offset has held back the commit; nil if all offsets are complete. A
    /// job that waits holds it back from the time it is due, which may be in the future.
    var heldSince: ContinuousClock.Instant? {
        guard let span, !span.isEmpty, let lowestSince else { return nil }
        return max(lowestSince, jobs[span.lowerBound]?.due ?? lowestSince)
    }

    /// A commit of the partition.
    struct Commit {
        /// The offset to commit; nil if the brokers have stored it already.
        var offset: GroupOffset?
        /// The offset below which the commit reports every completed offset.
        var toldEnd: Int64 = 0
        /// True if the commit reports all completed offsets.
        var tellsAll = true
        /// True if the stored commit reports completed offsets that this one omits.
        var tellsLess = false
    }

    /// The commit after these jobs have ended too, with metadata about completed offsets beyond.
    /// - Parameter limit: the maximum number of characters of the metadata.
    func uncommitted(ending offsets: [Int64] = [], metadataLimit limit: Int) -> Commit {
        guard var committedOffset, let committed else { return Commit() }
        for offset in offsets { _ = committedOffset.end(offset) }
        let map = committedOffset.ended
        let commitMetadata = map.commitMetadata(limit: limit)
        let end = map.toldEnd(commitMetadata)
        var commit = Commit(toldEnd: end, tellsAll: max(highestEnded, offsets.max() ?? -1) < end)
        if !commit.tellsAll {
            let stored = CompletedRanges(commitMetadata: committed.metadata, at: committed.offset)
            commit.tellsLess = (stored?.runs.last?.upperBound ?? committed.offset) > end
        }
        if map.base >= committed.offset {
            let offset = GroupOffset(map.base, metadata: commitMetadata.text)
            commit.offset = offset == committed ? nil : offset
        }
        return commit
    }

    /// The number of completed offsets that do not fit into commit metadata.
    func untracked(metadataLimit limit: Int) -> Int {
        committedOffset?.ended.commitMetadata(limit: limit).untracked ?? 0
    }

    /// Records an offset that the brokers have stored.
    mutating func committed(_ offset: GroupOffset) {
        if let committed, committed.offset <= offset.offset { self.committed = offset }
    }
}
