import Kafka

/// The jobs of one partition, for as long as it is this consumer's. A pure value.
struct PartitionLedger {
    /// Taken, and neither ended nor handed back.
    private struct Job {
        let bytes: Int
        var hasBegun = false
        /// Tells whoever has it to hand it back.
        var recall: (@Sendable () -> Void)?
    }

    /// Differs for each time the partition was assigned, so that what was taken before counts no more.
    let generation: Int
    /// What the brokers have, once that is known.
    private var committed: GroupOffset?
    /// What the owners before have ended.
    private var map: OffsetMap?
    private var watermark: Watermark?
    /// The highest job that has ended, by whomever. Above it only offsets without a record have.
    private var highestEnded: Int64 = -1
    private var jobs: [Int64: Job] = [:]
    /// Jobs that have begun and not ended.
    private(set) var begun = 0
    /// Of records that were ended since the last grant.
    private var returned = Credit.none
    /// Nothing more is begun: the partition is about to go.
    private var isClosing = false
    /// Since when the lowest offset that has not ended is the lowest.
    private var lowestSince: ContinuousClock.Instant?

    init(generation: Int) { self.generation = generation }

    // MARK: Records

    /// Says what was committed, before the first record is taken.
    mutating func open(_ committed: GroupOffset?, _ map: OffsetMap?) {
        self.committed = committed
        self.map = map
    }

    mutating func take(_ offset: Int64, bytes: Int, at now: ContinuousClock.Instant) -> Watermark.Taking {
        if isClosing { return .cameBefore }
        if watermark == nil { start(at: offset) }
        guard let taking = watermark?.take(offset) else { return .cameBefore }
        switch taking {
        case .taken:
            jobs[offset] = Job(bytes: bytes)
            if watermark?.base == offset { lowestSince = now }
        case .hasEnded: returned += Credit(records: 1, bytes: bytes)
        case .cameBefore: break
        }
        return taking
    }

    /// All records have come that there are below this offset.
    mutating func reachEnd(_ offset: Int64) {
        // What came since it is closing was not taken.
        if isClosing { return }
        if watermark == nil {
            // Without a commit, or with one of other records, the first record says where reading began.
            guard let committed, committed.offset <= offset else { return }
            start(at: committed.offset)
        }
        watermark?.reachEnd(offset)
    }

    private mutating func start(at offset: Int64) {
        // Records from below the committed offset are not those that it was committed for: the topic was made anew, or somebody
        // wants all of it again.
        if let known = committed, offset >= known.offset {
            watermark = Watermark(startingAt: offset, map: map)
            if let last = map?.runs.last { highestEnded = last.upperBound - 1 }
        } else {
            watermark = Watermark(startingAt: offset)
            committed = GroupOffset(offset)
        }
        map = nil
    }

    /// Asks whether the job may be begun, or has been; otherwise it is to be handed back.
    mutating func begin(_ offset: Int64) -> Bool {
        guard let job = jobs[offset] else { return false }
        if job.hasBegun { return true }
        if isClosing { return false }
        jobs[offset] = Job(bytes: job.bytes, hasBegun: true)
        begun += 1
        return true
    }

    /// The job waits, as if it had not begun; false when it is to be handed back now.
    mutating func rest(_ offset: Int64) -> Bool {
        guard let job = jobs[offset], !isClosing else { return false }
        if job.hasBegun { begun -= 1 }
        jobs[offset] = Job(bytes: job.bytes)
        return true
    }

    /// Says what to call when the job is to be handed back before it has begun.
    /// - Returns: whether that is so already.
    mutating func onRecall(_ offset: Int64, _ body: @escaping @Sendable () -> Void) -> Bool {
        guard jobs[offset]?.hasBegun == false else { return false }
        if isClosing { return true }
        jobs[offset]?.recall = body
        return false
    }

    /// Nothing is taken or begun any more.
    /// - Returns: what is to be called for the jobs that have not begun.
    mutating func close() -> [@Sendable () -> Void] {
        isClosing = true
        let waiting = jobs.filter { !$0.value.hasBegun }
        for offset in waiting.keys { jobs[offset]?.recall = nil }
        return waiting.values.compactMap(\.recall)
    }

    mutating func end(_ offset: Int64, at now: ContinuousClock.Instant) {
        guard let job = leave(offset) else { return }
        if watermark?.end(offset) == true { lowestSince = now }
        highestEnded = max(highestEnded, offset)
        returned += Credit(records: 1, bytes: job.bytes)
    }

    mutating func handBack(_ offset: Int64) { _ = leave(offset) }

    private mutating func leave(_ offset: Int64) -> Job? {
        let job = jobs.removeValue(forKey: offset)
        if job?.hasBegun == true { begun -= 1 }
        return job
    }

    /// How much credit to grant now; it goes in parcels of a quarter of the window. A partition whose commits have hardly any room left to tell
    /// what has ended gets none until they need less, or nothing of it is under way.
    mutating func credit(window: Credit, metadataLimit limit: Int) -> Credit {
        let isParcel = returned.records * 4 >= window.records || returned.bytes * 4 >= window.bytes
        guard !isClosing, jobs.isEmpty || (isParcel && !isCrowded(limit)) else { return .none }
        defer { returned = .none }
        return returned
    }

    /// Whether the text of what has ended takes three quarters of its limit, or more.
    private func isCrowded(_ limit: Int) -> Bool {
        guard limit > 0, let note = watermark?.ended.note(limit: limit) else { return false }
        return note.untold > 0 || note.text.utf8.count * 4 >= limit * 3
    }

    // MARK: Offsets

    /// How many jobs are under way.
    var underWay: Int { jobs.count }

    /// The lowest offset that has not ended, and one above the highest taken; nil before the first record.
    var span: Range<Int64>? { watermark.map { $0.base..<$0.next } }

    /// Since when the lowest offset that has not ended holds up all that come after it; nil where all have ended.
    var heldSince: ContinuousClock.Instant? { span?.isEmpty == false ? lowestSince : nil }

    /// What a commit says of the partition.
    struct Commit {
        /// What is to be committed; nil when the brokers have it.
        var offset: GroupOffset?
        /// What has ended below this offset is told.
        var toldEnd: Int64 = 0
        /// Whether that is all that has ended.
        var tellsAll = true
    }

    /// What may be committed once these have ended too, with the text of what has ended beyond.
    /// - Parameter limit: characters of that text.
    func uncommitted(ending offsets: [Int64] = [], metadataLimit limit: Int) -> Commit {
        guard var watermark, let committed else { return Commit() }
        for offset in offsets { _ = watermark.end(offset) }
        let map = watermark.ended
        let note = map.note(limit: limit)
        let end = map.toldEnd(note)
        var commit = Commit(toldEnd: end, tellsAll: max(highestEnded, offsets.max() ?? -1) < end)
        if map.base >= committed.offset {
            let offset = GroupOffset(map.base, metadata: note.text)
            commit.offset = offset == committed ? nil : offset
        }
        return commit
    }

    /// Offsets that have ended and of which a commit has no room to tell.
    func untold(metadataLimit limit: Int) -> Int { watermark?.ended.note(limit: limit).untold ?? 0 }

    /// The brokers have it.
    mutating func committed(_ offset: GroupOffset) {
        if let committed, committed.offset <= offset.offset { self.committed = offset }
    }
}
