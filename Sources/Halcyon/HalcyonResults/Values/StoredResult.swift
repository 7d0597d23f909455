import HalcyonModel

/// A result in the store.
public struct StoredResult: Hashable, Sendable {
    /// The key of the result.
    public var key: ResultKey
    /// The tenant of the job that made the result; nil for none.
    public var tenant: String?
    /// The file.
    public var body: [UInt8]
    /// The metadata of the file.
    public var metadata: ResultMetadata
    /// The expiry in milliseconds since 1970 by the Redis clock.
    public var expiresAt: Int64
    /// The time of storing, in the same unit.
    public var storedAt: Int64
    /// The ``ResultTTLPolicy/name`` of the policy that determined the expiry.
    public var rule: String
    /// The fencing token of the result: microseconds since 1970 by the Redis clock.
    public var fence: Int64
    /// The fencing token of the oldest input.
    public var since: Int64
    /// The source from which it was made, which may be part of the name of its file (``FileNameTemplate``); nil if it
    /// is unknown.
    public var source: Source?
    /// The ``TagDigest`` of each tag of the job that made the result; empty for a result that was not read from a
    /// store.
    public internal(set) var tagDigests: [String] = []

    /// Creates a result from all values.
    public init(
        key: ResultKey, tenant: String?, body: [UInt8], metadata: ResultMetadata, expiresAt: Int64, storedAt: Int64,
        rule: String,
        fence: Int64, since: Int64
    ) {
        self.key = key
        self.tenant = tenant
        self.body = body
        self.metadata = metadata
        self.expiresAt = expiresAt
        self.storedAt = storedAt
        self.rule = rule
        self.fence = fence
        self.since = since
    }

    init(_ record: ResultRecord, body: [UInt8]) {
        self.init(
            key: record.key, tenant: record.tenant, body: body, metadata: record.metadata,
            expiresAt: record.expiresAt, storedAt: record.storedAt, rule: record.rule, fence: record.fence,
            since: record.since)
        if metadata.format == .json { metadata.info = body }
        tagDigests = record.tagDigests
    }
}

/// The digest of a tag or of a tenant, which a result store has in place of the name.
public enum TagDigest {
    /// Returns 32 hexadecimal digits for a tag.
    /// - Parameter tenant: The tenant of the results; nil for those without a tenant.
    public static func of(_ tag: String, tenant: String?) -> String { PurgeScope.tag(tag, of: tenant).hash }

    /// Returns 32 hexadecimal digits for a tenant.
    public static func of(tenant: String) -> String { PurgeScope.tenant(tenant).hash }
}

extension ResultRecord {
    /// The digests of the tags of the job that made the result.
    var tagDigests: [String] { scopes.filter { $0.kind == .tag }.map(\.hash) }
}
