import Formats

/// The freshness limits imposed by redirects. A response that was loaded through redirects is fresh for the shortest
/// freshness lifetime on the way.
public struct RedirectLimits: Sendable {
    /// The internal header field of a loaded response that contains the limits in `Cache-Control` syntax: `max-age`
    /// applies to results, `s-maxage` to sources. Origins do not send it.
    public static let field = "Halcyon-Redirects"

    private var directives: [String] = []
    /// The maximum TTL of results in seconds; nil if unlimited.
    private var resultSeconds: Double?
    /// The time at which the first redirect becomes stale, in seconds since 1970; nil if unlimited.
    private var staleAt: Double?

    /// Creates limits without redirects.
    public init() {}

    /// Applies the limits of a redirect.
    /// - Parameters:
    ///   - status: The status of the redirect.
    ///   - headers: The header fields of the redirect.
    ///   - requestedAt: The time of the request, in seconds since 1970.
    ///   - receivedAt: The time of the response, in seconds since 1970.
    public mutating func add(status: Int, headers: HTTPFields, requestedAt: Double, receivedAt: Double) {
        let control = CacheControl(headers["Cache-Control"] ?? "")
        if control.noStore { add("no-store") }
        if control.isPrivate || headers.list("Vary").contains("*") { add("private") }
        if control.noCache { add("no-cache") }
        if control.forbidsStaleUse { add("must-revalidate") }
        let saysHowLong =
            control.maxAge != .absent || control.sharedMaxAge != .absent || headers.first("Expires") != nil
        guard saysHowLong else {
            // Without explicit freshness only permanent redirects may be cached (RFC 9110, section 15.1).
            if ![300, 301, 308].contains(status) { add("no-cache") }
            return
        }
        let response = StoredResponse(
            status: status, headers: headers, request: [:], requestedAt: requestedAt, receivedAt: receivedAt)
        var fresh = 0.0
        if case .fresh(let seconds) = response.freshness(after: 0) { fresh = seconds }
        staleAt = min(staleAt ?? .infinity, receivedAt + fresh)
        switch ResultTTL(maxAge: 0, headers: headers, completedAt: receivedAt) {
        case .seconds(let seconds): limitResults(to: seconds)
        case .notStored: limitResults(to: 0)
        case .standard, .standardUpTo: limitResults(to: Double(control.sharedMaxAge.number ?? 0))
        }
    }

    private mutating func limitResults(to seconds: Double) { resultSeconds = min(resultSeconds ?? .infinity, seconds) }

    private mutating func add(_ directive: String) {
        if !directives.contains(directive) { directives.append(directive) }
    }

    /// Returns the value of ``field`` for a response received at this time; nil if there are no limits.
    public func value(at receivedAt: Double) -> String? {
        var directives = directives
        if let resultSeconds { directives.append("max-age=\(Int(resultSeconds))") }
        if let staleAt { directives.append("s-maxage=\(Int(max(0, staleAt - receivedAt)))") }
        return directives.isEmpty ? nil : directives.joined(separator: ", ")
    }
}
