import Arguments
import HalcyonCluster

extension ArgumentKind<LetterFilter> {
    static var letterFilter: Self {
        ArgumentKind("NAME=VALUE, NAME one of \(LetterFilter.names), as the help describes them") { LetterFilter($0) }
    }
}
