import Formats

/// What the redirects on the way to a response leave of its freshness: the life of what was loaded through them is the shortest
/// on the way. A pure value.
public struct RedirectLimits: Sendable {
    /// The field in which a loaded response carries them, written like `Cache-Control`: `max-age` holds for results, and
    /// `s-maxage`, where there is one, for sources. No origin sends it.
    public static let field = "Halcyon-Redirects"

    private var directives: [String] = []
    /// Seconds for which results may live; nil while nothing limits them.
    private var resultSeconds: Double?
    /// The moment at which the first of the redirects is stale, in seconds since 1970; nil while nothing limits it.
    private var staleAt: Double?

    /// No redirects.
    public init() {}

    /// Follows a redirect.
    /// - Parameters:
    ///   - status: the redirect's.
    ///   - headers: the redirect's.
    ///   - requestedAt: when it was asked for, in seconds since 1970.
    ///   - receivedAt: when it had come.
    public mutating func add(status: Int, headers: HTTPFields, requestedAt: Double, receivedAt: Double) {
        let control = CacheControl(headers["Cache-Control"] ?? "")
        if control.noStore { add("no-store") }
        if control.isPrivate || headers.list("Vary").contains("*") { add("private") }
        if control.noCache { add("no-cache") }
        if control.forbidsStaleUse { add("must-revalidate") }
        let saysHowLong =
            control.maxAge != .absent || control.sharedMaxAge != .absent || headers.first("Expires") != nil
        guard saysHowLong else {
            // Only permanent redirects may be kept without a word about it (RFC 9110, section 15.1).
            if ![300, 301, 308].contains(status) { add("no-cache") }
            return
        }
        let response = StoredResponse(
            status: status, headers: headers, request: [:], requestedAt: requestedAt, receivedAt: receivedAt)
        var fresh = 0.0
        if case .fresh(let seconds) = response.freshness(after: 0) { fresh = seconds }
        staleAt = min(staleAt ?? .infinity, receivedAt + fresh)
        switch ResultLifetime(maxAge: 0, headers: headers, completedAt: receivedAt) {
        case .seconds(let seconds): limitResults(to: seconds)
        case .notStored: limitResults(to: 0)
        case .standard, .standardUpTo: limitResults(to: Double(control.sharedMaxAge.number ?? 0))
        }
    }

    private mutating func limitResults(to seconds: Double) { resultSeconds = min(resultSeconds ?? .infinity, seconds) }

    private mutating func add(_ directive: String) {
        if !directives.contains(directive) { directives.append(directive) }
    }

    /// The value of ``field`` for a response that has come at this moment; nil where nothing limits it.
    public func value(at receivedAt: Double) -> String? {
        var directives = directives
        if let resultSeconds { directives.append("max-age=\(Int(resultSeconds))") }
        if let staleAt { directives.append("s-maxage=\(Int(max(0, staleAt - receivedAt)))") }
        return directives.isEmpty ? nil : directives.joined(separator: ", ")
    }
}
