/// What all workers are told at once.
public enum ControlMessage: Hashable, Sendable {
    /// Nobody wants the jobs of this id any more.
    case cancel(String)
    /// This has been forgotten where all workers share it: what each keeps for itself is to follow.
    case purge(Purge)
}

/// What is to be forgotten, and whose.
public struct Purge: Hashable, Sendable {
    /// Which results.
    public enum Target: Hashable, Sendable {
        /// All results of a source, and the source itself where it is kept; not those of jobs that add headers of their own to its
        /// requests, to which it is another source.
        case source(Source)
        /// All results that jobs with this tag have made or found.
        case tag(String)
        /// One result.
        case key(ResultKey)
    }

    /// Which results.
    public var target: Target
    /// Whose; nil for those of nobody in particular.
    public var tenant: String?

    /// Takes the values as they are.
    public init(_ target: Target, of tenant: String? = nil) {
        self.target = target
        self.tenant = tenant
    }
}
