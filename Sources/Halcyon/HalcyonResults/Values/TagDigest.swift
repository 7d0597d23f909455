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
