/// A ring buffer of the newest events with a limit on its size in bytes. A pure value.
///
/// Events are numbered from 0 in order of arrival. The buffer contains all events between ``floor`` and ``cursor``.
struct EventRingBuffer: Sendable {
    /// The maximum size in bytes. One event is always stored, whatever its size.
    let limit: Int
    /// The position before the oldest event in the buffer.
    private(set) var floor: TopicCursor
    /// The position after the newest event.
    private(set) var cursor: TopicCursor
    /// The number of the oldest event in the buffer.
    private(set) var first = 0
    private(set) var bytes = 0
    private var records: [BroadcastEvent?] = []
    private var head = 0

    /// Creates an empty buffer at a position.
    init(limit: Int, at cursor: TopicCursor) {
        self.limit = limit
        (floor, self.cursor) = (cursor, cursor)
    }

    /// The number of the next event.
    var end: Int { first + records.count - head }

    mutating func append(_ record: BroadcastEvent) {
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

    /// Advances the position without an event.
    mutating func advance(to cursor: TopicCursor) { self.cursor.merge(cursor) }

    /// Returns the number of the first event that a client at this position may not have seen; nil if such events are
    /// no longer in the buffer.
    func number(behind cursor: TopicCursor) -> Int? {
        guard cursor.hasReached(floor) else { return nil }
        // The feed's cursor only grows, so a position past one event is past all earlier ones. This allows a binary
        // search.
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

    /// The number of the event in the middle of the buffer.
    var middle: Int { (first + end) / 2 }

    /// Returns events from a number on, which must be in the buffer or the next one: at least one if there is any, and
    /// then as many as fit into the given number of bytes.
    func records(from number: Int, upTo bytes: Int) -> [BroadcastEvent] {
        var found: [BroadcastEvent] = []
        var room = bytes
        for record in records[(head + number - first)...] {
            guard let record, found.isEmpty || record.frame.count <= room else { break }
            room -= record.frame.count
            found.append(record)
        }
        return found
    }
}
