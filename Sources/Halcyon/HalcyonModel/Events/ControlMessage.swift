/// A message that is broadcast to all workers.
public enum ControlMessage: Hashable, Sendable {
    /// Cancels jobs.
    case cancel(CancelTarget)
    /// Announces a purge of the shared caches; workers drop their local copies. The time is that of Redis in
    /// microseconds since 1970, as in fencing tokens; nil if it is unknown.
    case purge(Purge, at: Int64? = nil)
    /// Announces that the preset with this name was stored in or deleted from Redis.
    case preset(String)
    /// Pauses a lane or a tenant. The time is that of Redis in microseconds since 1970; nil if it is unknown.
    case pause(PauseTarget, at: Int64? = nil)
    /// Resumes a lane or a tenant. The time is that of Redis in microseconds since 1970; nil if it is unknown.
    case resume(PauseTarget, at: Int64? = nil)
    /// Requests a list of the jobs in flight from each worker.
    case list(JobListRequest)
}

/// The jobs to cancel.
public enum CancelTarget: Hashable, Sendable {
    /// The jobs with this id. With the name of an API key, only those that were submitted with this key.
    case job(String, ownedBy: String? = nil)
    /// The jobs of a tenant, or without a tenant, that have this tag.
    case tag(String, of: String? = nil)
    /// The jobs of a tenant, or without a tenant, that have this source. Jobs that add headers to its requests have a
    /// different source.
    case source(Source, of: String? = nil)
    /// The jobs of a tenant.
    case tenant(String)
}

/// A part of the work that can be paused and resumed.
public enum PauseTarget: Hashable, Sendable {
    /// The jobs of a lane.
    case lane(Lane)
    /// The jobs of a tenant, in all lanes.
    case tenant(String)
}

/// A request to all workers for the jobs that they have in flight.
public struct JobListRequest: Hashable, Sendable {
    /// The largest permitted ``limit``.
    public static let mostJobs = 1000
    /// The default of ``limit``.
    public static let standardLimit = 100

    /// The name of the reply list in Redis: 1 to 64 letters, digits, hyphens and underscores.
    public var reply: String
    /// The maximum number of jobs per worker, the oldest first.
    public var limit: Int
    /// The tenant whose jobs are listed; nil for all.
    public var tenant: String?
    /// The lane whose jobs are listed; nil for all.
    public var lane: Lane?

    /// Creates a request.
    /// - Parameters:
    ///   - reply: The name of the reply list.
    ///   - limit: The maximum number of jobs per worker, from 1 to ``mostJobs``.
    ///   - tenant: The tenant whose jobs are listed; nil for all.
    ///   - lane: The lane whose jobs are listed; nil for all.
    public init(reply: String, limit: Int = standardLimit, tenant: String? = nil, lane: Lane? = nil) {
        self.reply = reply
        self.limit = limit
        self.tenant = tenant
        self.lane = lane
    }

    /// True if a text may name a reply list.
    public static func isReply(_ text: String) -> Bool {
        (1...64).contains(text.utf8.count)
            && text.utf8.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x5F: true
                default: false
                }
            }
    }
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
