/// A cache of limited total cost that evicts the least recently used entries first. A pure value.
///
/// Every operation takes constant time.
public struct LRUCache<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    /// A key and its value.
    public typealias Entry = (key: Key, value: Value)

    /// A node of the doubly linked list in order of use.
    private struct Node {
        let key: Key
        let value: Value
        let cost: Int
        var newer: Int?
        var older: Int?
    }

    private var indices: [Key: Int] = [:]
    private var nodes: [Node?] = []
    private var free: [Int] = []
    private var newest: Int?
    private var oldest: Int?

    /// The maximum total cost of all entries.
    public let capacity: Int
    /// The total cost of all entries.
    public private(set) var cost = 0

    /// Creates an empty cache.
    public init(capacity: Int) { self.capacity = capacity }

    /// The number of entries.
    public var count: Int { indices.count }

    /// The least recently used entry.
    public var leastRecentlyUsed: Entry? { oldest.flatMap { nodes[$0] }.map { ($0.key, $0.value) } }

    /// Returns the value of a key and counts that as a use.
    public mutating func value(for key: Key) -> Value? {
        guard let index = indices[key] else { return nil }
        unlink(index)
        link(index)
        return nodes[index]?.value
    }

    /// Returns the value of a key without counting that as a use.
    public func peek(_ key: Key) -> Value? { indices[key].flatMap { nodes[$0]?.value } }

    /// Inserts a value and replaces the key's old one. A value that costs more than the capacity is not inserted.
    /// - Returns: The removed entries: the old one of the key, then the evicted ones.
    @discardableResult
    public mutating func insert(_ value: Value, for key: Key, cost: Int) -> [Entry] {
        var removed: [Entry] = []
        if let old = remove(key) { removed.append((key, old)) }
        guard cost <= capacity else { return removed }
        removed += evict(toCost: capacity - cost)
        let node = Node(key: key, value: value, cost: cost)
        let index = free.popLast() ?? nodes.count
        if index == nodes.count { nodes.append(node) } else { nodes[index] = node }
        indices[key] = index
        self.cost += cost
        link(index)
        return removed
    }

    /// Evicts the least recently used entries until the total cost is at most `limit`.
    /// - Returns: The evicted entries.
    public mutating func evict(toCost limit: Int) -> [Entry] {
        var evicted: [Entry] = []
        while cost > limit, let entry = leastRecentlyUsed {
            remove(entry.key)
            evicted.append(entry)
        }
        return evicted
    }

    /// Removes the entry of a key.
    /// - Returns: The value of the entry.
    @discardableResult
    public mutating func remove(_ key: Key) -> Value? {
        guard let index = indices.removeValue(forKey: key), let node = nodes[index] else { return nil }
        unlink(index)
        nodes[index] = nil
        free.append(index)
        cost -= node.cost
        return node.value
    }

    /// Removes all entries.
    public mutating func removeAll() { self = LRUCache(capacity: capacity) }

    private mutating func link(_ index: Int) {
        nodes[index]?.older = newest
        nodes[index]?.newer = nil
        if let newest { nodes[newest]?.newer = index }
        newest = index
        if oldest == nil { oldest = index }
    }

    private mutating func unlink(_ index: Int) {
        guard let (newer, older) = nodes[index].map({ ($0.newer, $0.older) }) else { return }
        if let newer { nodes[newer]?.older = older } else { newest = older }
        if let older { nodes[older]?.newer = newer } else { oldest = newer }
    }
}
