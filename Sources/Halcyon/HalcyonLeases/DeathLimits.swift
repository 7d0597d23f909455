/// How many deaths make a product poison (docs/poison.md).
public struct DeathLimits: Hashable, Sendable {
    /// Deaths that it caused, or may have: the first of a worker that made it, and those of children that tried it then; or of workers
    /// in the middle of what the host program's own provider does.
    public var deaths = 3
    /// Deaths of workers that had it under way where it could do no harm: while a child tried it, or while it was loaded over the network. Nothing
    /// but their number speaks against it.
    public var coincidences = 10

    /// The defaults.
    public init() {}
}
