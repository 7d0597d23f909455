/// What a job loads.
public enum Source: Hashable, Sendable {
    /// An image on the web.
    case web(WebURL)

    /// - Throws: ``Failure`` `unsupported_source` or `invalid_job`.
    public init(_ text: String) throws(Failure) {
        self = .web(try WebURL(text))
    }

    /// As the job gave it: the `subject` of its events.
    public var text: String {
        switch self {
        case .web(let url): url.text
        }
    }

    /// What it is known by in keys: equal for sources that are the same.
    public var cacheKey: String {
        switch self {
        case .web(let url): "url:\(url.canonical)"
        }
    }
}
