/// How far a call of a cluster has come beyond its first node, and whether it may go on.
struct Detour: Hashable {
    /// More redirections than that are a cluster at odds with itself: each is one of a slot on its way, or of an old map.
    private static let mostHops = 16

    private var hops = 0
    private var end: ContinuousClock.Instant?

    /// Whether the call may go to another node. True counts.
    mutating func mayHop() -> Bool {
        guard hops < Self.mostHops else { return false }
        hops += 1
        return true
    }

    /// Whether the call may be tried again in a while: for as long as calls wait for a connection, from the first time on.
    mutating func mayRest(_ now: ContinuousClock.Instant, patience: Duration) -> Bool {
        let end = end ?? now + patience
        self.end = end
        return now < end
    }
}
