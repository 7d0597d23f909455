import Digests
import HalcyonModel

extension ResultKey {
    /// The key of one output of a source.
    public init(source: Source, tenant: String? = nil, variant: Variant) {
        self.init(source: source, tenant: tenant, variant: variant) { SHA256.hash($0).description }
    }
}

extension Job {
    /// The key of each variant's result.
    public var keys: [ResultKey] { variants.map { ResultKey(source: source, tenant: tenant, variant: $0) } }

    /// The text whose hash is the source's place in the cluster.
    public var sourceText: String { source.canonicalText(of: tenant) }
}
