import Digests
import HalcyonModel

extension ResultKey {
    /// The key of one output of a source.
    public init(_ request: SourceRequest, variant: Variant) {
        self.init(request, variant: variant) { SHA256.hash($0).description }
    }
}

extension Job {
    /// The key of each variant's result.
    public var keys: [ResultKey] { variants.map { ResultKey(request, variant: $0) } }
}

extension SourceRequest {
    /// What all keys of the source have between their braces.
    public var sourceHash: String { ResultKey.sourceHash(of: self) { SHA256.hash($0).description } }
}
