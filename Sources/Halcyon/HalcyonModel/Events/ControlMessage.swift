/// A message that is broadcast to all workers.
public enum ControlMessage: Hashable, Sendable {
    /// Cancels the jobs with this id.
    case cancel(String)
    /// Announces a purge of the shared caches; workers drop their local copies. The time is that of Redis in
    /// microseconds since 1970, as in fencing tokens; nil if it is unknown.
    case purge(Purge, at: Int64? = nil)
    /// Announces that the preset with this name was stored in or deleted from Redis.
    case preset(String)
}

/// A request to purge cached results.
public struct Purge: Hashable, Sendable {
    /// The results to purge.
    public enum Target: Hashable, Sendable {
        /// All results of a source, and the cached source itself. Jobs that add headers to its requests use a different
        /// source.
        case source(Source)
        /// All results that jobs with this tag have created or hit.
        case tag(String)
        /// A single result.
        case key(ResultKey)
        /// All results of a tenant.
        case tenant(String)
    }

    /// The results to purge.
    public var target: Target
    /// The tenant that owns the results; nil for results without a tenant.
    public var tenant: String?

    /// Creates a purge. The target ``Target/tenant(_:)`` names the tenant itself.
    public init(_ target: Target, of tenant: String? = nil) {
        self.target = target
        self.tenant = if case .tenant(let name) = target { name } else { tenant }
    }
}
