/// What was forgotten, as its event tells it.
public struct Purged: Hashable, Sendable {
    /// What was asked for.
    public enum Target: Hashable, Sendable {
        /// A source, by its text.
        case source(String)
        /// A tag.
        case tag(String)
        /// A result's key.
        case key(String)
    }

    /// What was asked for.
    public var target: Target
    /// Whose results they were; nil for those of nobody in particular.
    public var tenant: String?
    /// How many results were there.
    public var count: Int

    /// Takes the values as they are.
    public init(_ target: Target, of tenant: String? = nil, count: Int) {
        self.target = target
        self.tenant = tenant
        self.count = count
    }

    /// Of a purge that found so many results.
    public init(_ purge: Purge, count: Int) {
        let target: Target =
            switch purge.target {
            case .source(let source): .source(source.shownText)
            case .tag(let tag): .tag(tag)
            case .key(let key): .key(key.description)
            }
        self.init(target, of: purge.tenant, count: count)
    }

    /// The text of what was asked for.
    public var name: String {
        switch target {
        case .source(let name), .tag(let name), .key(let name): name
        }
    }
}
