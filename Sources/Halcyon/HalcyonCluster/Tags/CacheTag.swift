import Formats
import HalcyonCoding
import HalcyonModel
import HalcyonResults

/// The tags by which shared caches, such as those of CDNs, index responses and purge them. A response has the tags of
/// its result, and a purge has the tags of the responses that it makes invalid:
///
/// | purged | tag |
/// |---|---|
/// | a source | `source-` and the hash of the source |
/// | a result | `key-` and the two hashes of the key |
/// | a tag | the tag, after the tenant and `/` if there is one; or `tag-` and its digest |
/// | a tenant | `tenant-` and its digest |
///
/// Tags consist of letters, digits and the characters `-._~%/:`, so that they need no escapes in HTTP headers, JSON and
/// XML. All other bytes are percent-encoded. A value.
public enum CacheTag {
    /// The maximum length, which is that of CloudFront. The digest of a tag is used in place of a longer one.
    public static let longest = 256

    /// Returns the tags of all responses with a result.
    public static func all(of key: ResultKey) -> [String] { [of(key), of(source: key.sourceHash)] }

    /// Returns the tags of the responses that a purge makes invalid.
    /// - Parameter hasStore: True if there is a result store. The results that it restores have digests in place of
    ///   tags.
    public static func all(of purge: Purge, hasStore: Bool) -> [String] {
        switch purge.target {
        case .source(let source): return [of(source: SourceRequest(source, tenant: purge.tenant).sourceHash)]
        case .key(let key): return [of(key)]
        case .tag(let tag):
            let tags = [of(tag, of: purge.tenant), of(digest: TagDigest.of(tag, tenant: purge.tenant))]
            return hasStore && tags[0] != tags[1] ? tags : [tags[0]]
        case .tenant(let tenant): return [of(tenant: tenant)]
        }
    }

    /// Returns the tags of a job's tags and of its tenant.
    public static func all(of tags: [String], of tenant: String?) -> [String] {
        tags.map { of($0, of: tenant) } + (tenant.map { [of(tenant: $0)] } ?? [])
    }

    /// Returns the tag of a digest of a result store.
    static func of(digest: String) -> String { "tag-\(digest)" }

    /// Returns the tag of all responses with results of a tenant.
    static func of(tenant: String) -> String { "tenant-\(TagDigest.of(tenant: tenant))" }

    private static func of(source hash: String) -> String { "source-\(hash)" }

    private static func of(_ key: ResultKey) -> String { "key-\(key.sourceHash)-\(key.variantHash)" }

    private static func of(_ tag: String, of tenant: String?) -> String {
        let scope = tenant.map { PercentEncoding.encode($0, keeping: ":") + "/" } ?? ""
        let text = scope + PercentEncoding.encode(tag, keeping: ":")
        return text.utf8.count <= longest ? text : of(digest: TagDigest.of(tag, tenant: tenant))
    }
}
