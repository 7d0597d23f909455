import HalcyonCluster
import Values

extension ValueKind<LetterFilter> {
    static var letterFilter: Self {
        ValueKind("NAME=VALUE, NAME one of \(LetterFilter.names), as the help describes them") { LetterFilter($0) }
    }
}
