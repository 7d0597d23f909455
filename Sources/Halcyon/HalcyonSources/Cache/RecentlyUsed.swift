/// Values by their keys, within a budget: each costs something, and what has not been used for longest goes first. Every
/// operation takes constant time. A pure value.
struct RecentlyUsed<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private struct Node {
        let key: Key
        /// nil in a node that is free.
        var value: Value?
        let cost: Int
        var newer: Int
        var older: Int
    }

    private static var none: Int { -1 }

    private var places: [Key: Int] = [:]
    private var nodes: [Node] = []
    private var free: [Int] = []
    private var newest = -1
    private var oldest = -1

    /// What all of them may cost together.
    let capacity: Int
    /// What they cost.
    private(set) var cost = 0

    /// Nothing, with room for `capacity`.
    init(capacity: Int) { self.capacity = capacity }

    /// How many there are.
    var count: Int { places.count }

    /// Whether there is one of this key, which is no use of it.
    func contains(_ key: Key) -> Bool { places[key] != nil }

    /// The value of a key, which counts as a use of it.
    mutating func use(_ key: Key) -> Value? {
        guard let place = places[key] else { return nil }
        unlink(place)
        link(place)
        return nodes[place].value
    }

    /// Puts a value in place of what had its key, unless it alone costs too much.
    ///
    /// - Returns: what had to go for it: others, the older ones first, and the old value of its key.
    @discardableResult
    mutating func put(_ value: Value, cost: Int, as key: Key) -> [(key: Key, value: Value)] {
        var gone: [(Key, Value)] = []
        if let old = remove(key) { gone.append((key, old)) }
        guard cost <= capacity else { return gone }
        gone += shrink(to: capacity - cost)
        let node = Node(key: key, value: value, cost: cost, newer: Self.none, older: Self.none)
        let place = free.popLast() ?? nodes.count
        if place == nodes.count { nodes.append(node) } else { nodes[place] = node }
        places[key] = place
        self.cost += cost
        link(place)
        return gone
    }

    /// Lets the oldest go until no more than this is spent.
    mutating func shrink(to limit: Int) -> [(key: Key, value: Value)] {
        var gone: [(Key, Value)] = []
        while cost > limit, oldest != Self.none {
            let key = nodes[oldest].key
            guard let value = remove(key) else { break }
            gone.append((key, value))
        }
        return gone
    }

    /// Takes a key out.
    @discardableResult
    mutating func remove(_ key: Key) -> Value? {
        guard let place = places.removeValue(forKey: key) else { return nil }
        unlink(place)
        free.append(place)
        cost -= nodes[place].cost
        return nodes[place].value.take()
    }

    private mutating func link(_ place: Int) {
        nodes[place].older = newest
        nodes[place].newer = Self.none
        if newest != Self.none { nodes[newest].newer = place }
        newest = place
        if oldest == Self.none { oldest = place }
    }

    private mutating func unlink(_ place: Int) {
        let (newer, older) = (nodes[place].newer, nodes[place].older)
        if newer == Self.none { newest = older } else { nodes[newer].older = older }
        if older == Self.none { oldest = newer } else { nodes[older].newer = newer }
    }
}
