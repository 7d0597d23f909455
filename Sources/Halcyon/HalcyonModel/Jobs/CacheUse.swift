/// Which tiers a job uses, and how.
public struct CacheUse: Hashable, Sendable {
    /// Whether results are kept in the result tier and looked for there.
    public var memory = true
    /// Whether sources are kept in the source tier and looked for there.
    public var source = true
    /// Whether everything is fetched and made anew, whatever is there; it is kept all the same.
    public var reload = false
    /// Whether the job is content with what is there, results or sources: no origin is asked for anything.
    public var onlyIfCached = false

    /// All tiers, and neither a fetch forced nor one forbidden.
    public init() {}

    /// Whether the result tier is looked at.
    public var looksAtResults: Bool { memory && !reload }
}
