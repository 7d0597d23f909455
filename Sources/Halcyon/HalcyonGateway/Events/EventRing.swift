/// The newest events, as many as fit into a number of bytes. A pure value.
///
/// Each has a number, from 0 in the order of coming. What is there is complete: from ``floor`` to ``cursor`` no event is missing.
struct EventRing: Sendable {
    /// How many bytes are kept. One event is kept, however long.
    let limit: Int
    /// In front of the oldest event that is there.
    private(set) var floor: TopicCursor
    /// Behind the newest event.
    private(set) var cursor: TopicCursor
    /// The number of the oldest event that is there.
    private(set) var first = 0
    private(set) var bytes = 0
    private var records: [FeedRecord?] = []
    private var head = 0

    /// An empty one that begins here.
    init(limit: Int, at cursor: TopicCursor) {
        self.limit = limit
        (floor, self.cursor) = (cursor, cursor)
    }

    /// The number of the next event.
    var end: Int { first + records.count - head }

    mutating func append(_ record: FeedRecord) {
        records.append(record)
        bytes += record.bytes
        cursor.merge(record.cursor)
        while bytes > limit, records.count - head > 1, let oldest = records[head] {
            bytes -= oldest.bytes
            floor.pass(oldest.partition, oldest.offset)
            records[head] = nil
            head += 1
            first += 1
        }
        if head >= 1024, head * 2 > records.count {
            records.removeFirst(head)
            head = 0
        }
    }

    /// Nothing more comes before this.
    mutating func advance(to cursor: TopicCursor) { self.cursor.merge(cursor) }

    /// The number of the first event that may be yet to come for who has come so far; nil when some of those are not there any more.
    func number(behind cursor: TopicCursor) -> Int? {
        guard cursor.hasReached(floor) else { return nil }
        // The feed's own cursor only grows: whoever has reached it behind one event has done so behind all before.
        var (low, high) = (head, records.count)
        while low < high {
            let middle = (low + high) / 2
            if let record = records[middle], cursor.hasReached(record.cursor) {
                low = middle + 1
            } else {
                high = middle
            }
        }
        return first + low - head
    }

    /// The number of the event in the middle.
    var middle: Int { (first + end) / 2 }

    /// Events from a number on, which must be there or the next: at least one if there is one, and no more than make so many bytes.
    func records(from number: Int, atMost bytes: Int) -> [FeedRecord] {
        var found: [FeedRecord] = []
        var room = bytes
        for record in records[(head + number - first)...] {
            guard let record, found.isEmpty || record.frame.count <= room else { break }
            room -= record.frame.count
            found.append(record)
        }
        return found
    }
}
