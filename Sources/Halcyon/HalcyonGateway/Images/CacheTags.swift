import Formats
import HalcyonCluster
import HalcyonModel

/// Settings of the headers by which shared caches purge images.
public struct CacheTagOptions: Hashable, Sendable {
    /// A response header with tags.
    public enum Header: String, CaseIterable, Sendable {
        /// `Cache-Tag` of Cloudflare, CloudFront and others, with commas between tags.
        case cacheTag = "cache-tag"
        /// `Surrogate-Key` of Fastly, with spaces between keys.
        case surrogateKey = "surrogate-key"
        /// `xkey` of Varnish, with spaces between keys.
        case xkey

        /// The name and the separator of the header.
        var form: (name: String, separator: String) {
            switch self {
            case .cacheTag: ("Cache-Tag", ",")
            case .surrogateKey: ("Surrogate-Key", " ")
            case .xkey: ("xkey", " ")
            }
        }
    }

    /// The headers that responses have.
    public var headers: [Header] = []
    /// The maximum size of the value of each header. CDNs accept 16 KiB.
    public var maximumBytes = 8 << 10

    /// Creates options without headers.
    public init() {}

    /// The memory that the headers of a response need.
    var headBytes: Int { Set(headers).count * (maximumBytes + 64) }

    /// Returns the headers of a response with a result. A pure function.
    /// - Parameter tags: the tags of its jobs; nil if they are too many.
    /// - Returns: nil if the tags do not fit. Shared caches must not store the response, because a purge might not reach
    ///   it there.
    func fields(of key: String, _ tags: [String]?) -> HTTPFields? {
        guard !headers.isEmpty, let key = ResultKey(key) else { return [:] }
        guard let tags else { return nil }
        let all = CacheTag.all(of: key) + tags
        guard all.reduce(-1, { $0 + $1.utf8.count + 1 }) <= maximumBytes else { return nil }
        var fields = HTTPFields()
        for header in headers {
            let (name, separator) = header.form
            fields[name] = all.joined(separator: separator)
        }
        return fields
    }
}
