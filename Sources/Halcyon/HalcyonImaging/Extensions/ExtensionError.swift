/// Why something could not be registered: a mistake in the host program.
public enum ExtensionError: Error, Hashable, CustomStringConvertible {
    /// The name has other characters than jobs may use, or too many, or none.
    case malformed(kind: String, name: String)
    /// Halcyon has one of its own by that name.
    case builtIn(kind: String, name: String)
    /// Two were given by that name.
    case doubled(kind: String, name: String)

    /// For people.
    public var description: String {
        switch self {
        case .malformed(let kind, let name):
            "the \(kind) \"\(name)\" needs a name of 1 to 64 letters, digits, \".\", \"_\" and \"-\""
        case .builtIn(let kind, let name): "\(name) is a \(kind) of Halcyon's own"
        case .doubled(let kind, let name): "the \(kind) \(name) is registered twice"
        }
    }
}
