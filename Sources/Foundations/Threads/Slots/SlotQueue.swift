/// Who waits for a place: one queue for each level of urgency. A pure value.
struct SlotQueue<Waiter> {
    private struct Entry {
        var level: Int
        let waiter: Waiter
    }

    private var entries: [UInt64: Entry] = [:]
    /// Numbers as they came. One that was taken out, or stands in another queue by now, is passed over.
    private var queues: [Fifo<UInt64>]
    private var lengths: [Int]
    private var turns: Turns

    init(shares: [Int]) {
        queues = shares.map { _ in Fifo() }
        lengths = shares.map { _ in 0 }
        turns = Turns(shares: shares)
    }

    var count: Int { entries.count }

    /// Puts a waiter at the end of its queue.
    mutating func append(_ waiter: Waiter, number: UInt64, level: Int) {
        let level = min(max(level, 0), queues.count - 1)
        entries[number] = Entry(level: level, waiter: waiter)
        enqueue(number, level)
    }

    /// Moves a waiter to the end of a more urgent queue.
    mutating func raise(_ number: UInt64, to level: Int) {
        let level = max(level, 0)
        guard let old = entries[number]?.level, level < old else { return }
        lengths[old] -= 1
        entries[number]?.level = level
        enqueue(number, level)
    }

    private mutating func enqueue(_ number: UInt64, _ level: Int) {
        if lengths[level] == 0 { turns.enter(level) }
        lengths[level] += 1
        queues[level].append(number)
    }

    /// Takes a waiter out; nil when it is not there.
    mutating func remove(_ number: UInt64) -> Waiter? {
        guard let entry = entries.removeValue(forKey: number) else { return nil }
        lengths[entry.level] -= 1
        return entry.waiter
    }

    /// Takes out whose turn it is.
    mutating func popNext() -> Waiter? {
        guard let level = turns.next(where: { lengths[$0] > 0 }) else { return nil }
        while let number = queues[level].popFirst() {
            if entries[number]?.level == level { return remove(number) }
        }
        return nil
    }
}
