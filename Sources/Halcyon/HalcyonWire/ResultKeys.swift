import Digests
import HalcyonModel

extension ResultKey {
    /// The key of one output of a source.
    public init(source: Source, variant: Variant) {
        self.init(source: source, variant: variant) { SHA256.hash($0).description }
    }
}
