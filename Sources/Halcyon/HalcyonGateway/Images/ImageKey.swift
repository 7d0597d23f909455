import HalcyonCluster
import HalcyonModel

/// The name of an image that may be asked for: of a result, or of a hand-off. Nothing else that Redis holds has such a name.
enum ImageKey: Hashable {
    /// A result, which stays.
    case result(String)
    /// What is given once.
    case handOff(String)

    /// Nil for what is neither.
    init?(_ text: String) {
        if ResultKey(text) != nil {
            self = .result(text)
        } else if ResultTier.isHandOffKey(text) {
            self = .handOff(text)
        } else {
            return nil
        }
    }
}
