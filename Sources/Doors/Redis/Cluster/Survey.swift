/// Who is asked for the map of a cluster: one node at a time, until one has answered.
///
/// A pure value: it says whom to ask, and is told what came of it.
struct Survey: Hashable {
    /// The node that is being asked.
    private(set) var asked: RedisAddress?
    private var candidates: ArraySlice<RedisAddress> = []

    /// Begins with the first of these nodes, each of which is asked once. Nil when one is being asked already, or there are none.
    mutating func begin(_ nodes: [RedisAddress]) -> RedisAddress? {
        guard asked == nil else { return nil }
        var known: Set<RedisAddress> = []
        candidates = nodes.filter { known.insert($0).inserted }[...]
        asked = candidates.popFirst()
        return asked
    }

    /// A node has no answer: the next one to ask. Nil when there is none left, or it is another node that is being asked.
    mutating func failed(_ node: RedisAddress) -> RedisAddress? {
        guard asked == node else { return nil }
        asked = candidates.popFirst()
        return asked
    }

    /// A node has answered.
    mutating func answered() { (asked, candidates) = (nil, []) }
}
