import Threads

/// Sources kept in memory, each as long as it is fresh, all of them within a number of bytes: what has not been used for
/// longest goes first. A pure value.
struct KeptSources {
    private struct Entry {
        let source: LoadedSource
        let expiry: ContinuousClock.Instant
    }

    /// What an entry counts for at least: a small source takes more than its bytes.
    static let leastCost = 4096

    private var entries: LRUCache<[UInt8], Entry>

    /// What the entries count for.
    var bytes: Int { entries.cost }

    /// - Parameter capacity: bytes of all sources together; 0 keeps none.
    init(capacity: Int) { entries = LRUCache(capacity: capacity) }

    /// The source that is kept under this name; nil when there is none or it is no longer fresh.
    mutating func source(_ name: [UInt8], at now: ContinuousClock.Instant) -> LoadedSource? {
        guard let entry = entries.value(for: name) else { return nil }
        guard now < entry.expiry else {
            entries.remove(name)
            return nil
        }
        return entry.source
    }

    /// Forgets the source of this name.
    mutating func remove(_ name: [UInt8]) { entries.remove(name) }

    /// Keeps a source in place of what had its name, unless it alone is too large.
    mutating func keep(_ source: LoadedSource, as name: [UInt8], until expiry: ContinuousClock.Instant) {
        entries.insert(Entry(source: source, expiry: expiry), for: name, cost: max(Self.leastCost, source.body.count))
    }
}
