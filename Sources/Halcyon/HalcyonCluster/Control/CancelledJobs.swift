import HalcyonCoding
import HalcyonModel

/// The attributes of a job by which it is cancelled or superseded.
public struct JobIdentity: Sendable {
    /// The id of the job.
    public let id: String
    /// The time at which the job was written to its lane, in milliseconds since 1970.
    public let submitted: Int64
    /// The claim of the job to its display slot; nil if it has none.
    public let slot: SupersedeToken?
    /// The name of the API key with which the job was submitted; nil for none.
    public var owner: String?
    /// The batch of the job; nil for none.
    public var batch: String?
    /// The tenant of the job; nil for none.
    public var tenant: String?
    /// The tags of the job.
    public var tags: [String] = []
    /// The hash of the job's source, which includes its tenant; nil if it is unknown.
    public var sourceHash: String?

    /// Creates the identity of a job without an owner, a batch, a tenant and tags.
    /// - Parameters:
    ///   - id: The id of the job.
    ///   - submitted: The time at which the job was written to its lane, in milliseconds since 1970.
    ///   - slot: The claim of the job to its display slot; nil if it has none.
    public init(id: String, submitted: Int64, slot: SupersedeToken? = nil) {
        self.id = id
        self.submitted = submitted
        self.slot = slot
    }

    /// Returns true if a cancellation selects this job, regardless of time.
    public func isSelected(by cancellation: CancellationKey) -> Bool {
        keys(of: cancellation.kind).contains(cancellation)
    }

    fileprivate func keys(of kind: CancellationKey.Kind) -> [CancellationKey] {
        switch kind {
        case .job: [CancellationKey(kind, id)]
        case .ownJob: owner.map { [CancellationKey(id: id, of: $0)] } ?? []
        case .tag: tags.map { CancellationKey(tag: $0, of: tenant) }
        case .source: sourceHash.map { [CancellationKey(kind, $0)] } ?? []
        case .tenant: tenant.map { [CancellationKey(kind, $0)] } ?? []
        }
    }
}

/// The header of a job that was submitted with an API key, or that a worker has listed for a batch of a key: the name
/// of the key. It stays the same in retry topics.
public enum OwnerHeader {
    /// The name of the header.
    public static let name = "halcyon-owner"
}

/// The attribute that cancelled jobs have in common. Texts are compared by bytes, because equal Swift strings may be
/// different ids.
public struct CancellationKey: Hashable, Sendable {
    fileprivate enum Kind: Hashable, Sendable, CaseIterable {
        case job, ownJob, tag, source, tenant
    }

    fileprivate let kind: Kind
    private let bytes: [UInt8]

    /// Creates the key of the jobs to cancel.
    public init(_ target: CancelTarget) {
        switch target {
        case .job(let id, nil): self.init(.job, id)
        case .job(let id, let owner?): self.init(id: id, of: owner)
        case .tag(let tag, let tenant): self.init(tag: tag, of: tenant)
        case .source(let source, let tenant):
            self.init(.source, SourceRequest(source, tenant: tenant).sourceHash)
        case .tenant(let tenant): self.init(.tenant, tenant)
        }
    }

    fileprivate init(_ kind: Kind, _ name: String) {
        self.kind = kind
        bytes = Array(name.utf8)
    }

    /// An id contains no U+0000.
    fileprivate init(id: String, of owner: String) { self.init(.ownJob, "\(id)\0\(owner)") }

    /// A tenant's name contains no slash.
    fileprivate init(tag: String, of tenant: String?) { self.init(.tag, "\(tenant ?? "")/\(tag)") }
}

/// The cancellations of the recent past. A pure value, bounded by count and age.
///
/// A cancellation applies to jobs that were submitted at or before its time. An id may be used again afterwards.
public struct CancelledJobs: Sendable {
    private struct Entry {
        let key: CancellationKey
        /// Milliseconds since 1970.
        let moment: Int64
    }

    /// The time of the last cancellation of each key.
    private var moments: [CancellationKey: Int64] = [:]
    /// The kinds of the keys, with their numbers.
    private var kinds: [CancellationKey.Kind: Int] = [:]
    /// All cancellations in the order of arrival, including replaced ones.
    private var entries: [Entry] = []
    /// The index of the first entry that has not been dropped.
    private var first = 0
    private let capacity: Int
    private let lifetime: Int64

    /// Creates an empty set.
    /// - Parameters:
    ///   - capacity: the maximum number of cancellations; beyond it, the oldest are dropped.
    ///   - lifetime: the number of milliseconds for which a cancellation applies.
    public init(capacity: Int, lifetime: Int64) {
        self.capacity = capacity
        self.lifetime = lifetime
    }

    /// The number of cancellations.
    public var count: Int { moments.count }

    /// Cancels jobs that were submitted at or before `moment`.
    /// - Parameter now: the current time in milliseconds since 1970, like all times here.
    public mutating func cancel(_ key: CancellationKey, at moment: Int64, now: Int64) {
        drop(before: now - lifetime)
        guard moment >= now - lifetime else { return }
        guard moments[key].map({ $0 < moment }) ?? true else { return }
        if moments.updateValue(moment, forKey: key) == nil { kinds[key.kind, default: 0] += 1 }
        entries.append(Entry(key: key, moment: moment))
        while moments.count > capacity { dropFirst() }
    }

    /// True if a job is cancelled.
    public func contains(_ job: JobIdentity) -> Bool {
        guard !moments.isEmpty else { return false }
        return kinds.keys.contains { kind in
            job.keys(of: kind).contains { moments[$0].map { job.submitted <= $0 } ?? false }
        }
    }

    private mutating func drop(before oldest: Int64) {
        while first < entries.count, entries[first].moment < oldest { dropFirst() }
    }

    private mutating func dropFirst() {
        let entry = entries[first]
        first += 1
        // A key that was cancelled again has a later entry.
        if moments[entry.key] == entry.moment {
            moments[entry.key] = nil
            let left = kinds[entry.key.kind, default: 1] - 1
            kinds[entry.key.kind] = left > 0 ? left : nil
        }
        if first > 64, first * 2 > entries.count {
            entries.removeFirst(first)
            first = 0
        }
    }
}
