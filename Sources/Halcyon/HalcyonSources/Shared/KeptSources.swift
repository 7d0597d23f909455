/// Sources kept in memory, each as long as it is fresh, all of them within a number of bytes: what has not been used for
/// longest goes first. A pure value.
struct KeptSources {
    private struct Entry {
        let source: LoadedSource
        let expiry: ContinuousClock.Instant
        var lastUse: UInt64
    }

    /// What an entry counts for at least: so there are never so many that looking at each takes long.
    static let leastCost = 4096

    private var entries: [String: Entry] = [:]
    private var uses: UInt64 = 0
    private let capacity: Int
    /// What the entries count for.
    private(set) var bytes = 0

    /// - Parameter capacity: bytes of all sources together; 0 keeps none.
    init(capacity: Int) {
        self.capacity = capacity
    }

    /// The source that is kept under this name; nil when there is none or it is no longer fresh.
    mutating func source(_ name: String, at now: ContinuousClock.Instant) -> LoadedSource? {
        guard let entry = entries[name] else { return nil }
        guard now < entry.expiry else {
            remove(name)
            return nil
        }
        uses += 1
        entries[name]?.lastUse = uses
        return entry.source
    }

    /// Keeps a source in place of what had its name, unless it alone is too large.
    mutating func keep(_ source: LoadedSource, as name: String, until expiry: ContinuousClock.Instant) {
        remove(name)
        let cost = Self.cost(of: source)
        guard cost <= capacity else { return }
        while bytes + cost > capacity, let oldest = entries.min(by: { $0.value.lastUse < $1.value.lastUse })?.key {
            remove(oldest)
        }
        uses += 1
        entries[name] = Entry(source: source, expiry: expiry, lastUse: uses)
        bytes += cost
    }

    private mutating func remove(_ name: String) {
        if let entry = entries.removeValue(forKey: name) { bytes -= Self.cost(of: entry.source) }
    }

    private static func cost(of source: LoadedSource) -> Int { max(leastCost, source.body.count) }
}
