/// What a job loads.
public enum Source: Hashable, Codable, Sendable {
    /// An image on the web.
    case web(WebURL)
    /// A drawn avatar.
    case initials(Initials)

    /// - Throws: ``Failure`` `unsupported_source` or `invalid_job`.
    public init(_ text: String) throws(Failure) {
        if text.hasPrefix(Initials.scheme) {
            self = .initials(try Initials(String(text.dropFirst(Initials.scheme.count))))
        } else {
            self = .web(try WebURL(text))
        }
    }

    /// As the job gave it: the `subject` of its events.
    public var text: String {
        switch self {
        case .web(let url): url.text
        case .initials(let initials): Initials.scheme + initials.text
        }
    }

    /// What it is known by in keys: equal for sources that are the same.
    public var cacheKey: String {
        switch self {
        case .web(let url): "url:\(url.canonical)"
        case .initials(let initials): "initials:\(initials.cacheKey)"
        }
    }
}
