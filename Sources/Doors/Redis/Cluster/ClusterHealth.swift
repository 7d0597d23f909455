/// What a cluster's client can say of its connections as a whole.
///
/// A pure value.
struct ClusterHealth: Hashable {
    /// The masters that serve slots; empty while none is known.
    var masters: Set<RedisAddress> = []
    /// Why there is no connection to a node, or no map.
    private(set) var troubles: [RedisAddress: RedisError] = [:]
    /// Why the map is not known.
    private(set) var mapTrouble: RedisError?
    private var told: RedisState?

    /// A node is away.
    mutating func note(_ error: RedisError, at node: RedisAddress) { troubles[node] = error }

    /// A node is there, or is none of the cluster's.
    mutating func forget(_ node: RedisAddress) { troubles[node] = nil }

    /// Nobody knows the map.
    mutating func noteNoMap(_ error: RedisError) { mapTrouble = error }

    /// Somebody knows the map.
    mutating func noteMap(of masters: [RedisAddress]) {
        self.masters = Set(masters)
        mapTrouble = nil
    }

    /// Whether something is not as it should be, and may have changed by the next look.
    var isImpaired: Bool { mapTrouble != nil || masters.contains { troubles[$0] != nil } }

    /// The state; nil while nothing is known.
    private var state: RedisState? {
        guard !masters.isEmpty else { return mapTrouble.map { .lost($0) } }
        let away = masters.filter { troubles[$0] != nil }.sorted { "\($0)" < "\($1)" }
        guard let first = away.first.flatMap({ troubles[$0] }) else { return .connected }
        return away.count == masters.count ? .lost(first) : .impaired(first)
    }

    /// The state, if it is of another kind than the last one that was taken.
    mutating func takeChange() -> RedisState? {
        guard let state else { return nil }
        switch (told, state) {
        case (.connected, .connected), (.impaired, .impaired), (.lost, .lost): return nil
        default:
            told = state
            return state
        }
    }
}
