import Formats

/// A response stored in a shared cache (RFC 9111), without its body.
///
/// Times are relative, so that caches need no common clock: the age when it was stored, and the time since then.
public struct StoredResponse: Hashable, Codable, Sendable {
    /// The status of the response.
    public var status: Int
    /// The header fields that are relevant to caching.
    public private(set) var headers: HTTPFields
    /// The request's header fields that the response's Vary names, as sent.
    public let varied: HTTPFields
    /// The age in seconds when the response was stored: the "corrected initial age" of section 4.2.3.
    public private(set) var initialAge: Double

    /// The names of the header fields that are stored.
    public static let keptFields = [
        "Cache-Control", "Expires", "Date", "Age", "ETag", "Last-Modified", "Vary", "Content-Type",
        RedirectLimits.field, Validators.resourceField,
    ]

    /// Creates a stored response from a received one.
    /// - Parameters:
    ///   - status: The status of the response.
    ///   - headers: The header fields of the response, of which ``keptFields`` are stored.
    ///   - request: The header fields of the request.
    ///   - requestedAt: The time when the request was sent, in seconds since 1970.
    ///   - receivedAt: The time when the response's header was received, in seconds since 1970.
    public init(
        status: Int, headers: HTTPFields, request: HTTPFields, requestedAt: Double, receivedAt: Double
    ) {
        self.status = status
        self.headers = headers.only(Self.keptFields)
        varied = request.only(headers.list("Vary"))
        // A recipient with a clock adds a missing Date (RFC 9110, section 6.6.1).
        let date = headers.first("Date").flatMap { HTTPDate.seconds(of: $0, now: receivedAt) } ?? receivedAt
        self.headers["Date"] = HTTPDate.text(of: date)
        let apparentAge = max(0, receivedAt - date)
        // The first of several values is used, and a malformed one is ignored (RFC 9111, section 5.1).
        let age = headers.list("Age").first.flatMap { DeltaSeconds.parse($0.utf8) } ?? 0
        let responseDelay = max(0, receivedAt - requestedAt)
        initialAge = max(apparentAge, Double(age) + responseDelay)
    }

    /// Restores a response from its stored parts.
    public init(status: Int, headers: HTTPFields, varied: HTTPFields, initialAge: Double) {
        self.status = status
        self.headers = headers
        self.varied = varied
        self.initialAge = initialAge
    }

    private var control: CacheControl { CacheControl(headers["Cache-Control"] ?? "") }
    /// The limits imposed by redirects.
    private var redirects: CacheControl { CacheControl(headers[RedirectLimits.field] ?? "") }

    /// Returns true if a shared cache may store the response to a GET (section 3).
    ///
    /// - Parameter request: The header fields of the request.
    public func mayBeStored(request: HTTPFields) -> Bool {
        let control = control
        for control in [control, redirects] where control.noStore || control.isPrivate { return false }
        guard !headers.list("Vary").contains("*") else { return false }
        guard request["Authorization"] != nil else { return true }
        // Section 3.5.
        return control.isPublic || control.mustRevalidate || control.sharedMaxAge != .absent
    }

    /// Returns true if the response can be used for a request with these header fields (section 4.1).
    public func answers(request: HTTPFields) -> Bool {
        headers.list("Vary").allSatisfy { request[$0].map { Array($0.utf8) } == varied[$0].map { Array($0.utf8) } }
    }

    /// The validators for a conditional request (section 4.3.1); nil if the response has none.
    public var validators: Validators? {
        let validators = Validators(of: headers)
        return validators.isEmpty ? nil : validators
    }

    /// Returns the response, updated by a 304 response of its origin (sections 3.2 and 4.3.4).
    public func confirmed(by notModified: StoredResponse) -> StoredResponse {
        var confirmed = self
        for name in Self.keptFields where notModified.headers[name] != nil {
            confirmed.headers[name] = notModified.headers[name]
        }
        // Without a new Age, the old one does not apply to a response directly from the origin.
        if notModified.headers["Age"] == nil { confirmed.headers["Age"] = nil }
        // The redirects were followed again.
        confirmed.headers[RedirectLimits.field] = notModified.headers[RedirectLimits.field]
        confirmed.initialAge = notModified.initialAge
        return confirmed
    }

    /// Returns the seconds for which the response should be stored: while it is fresh or may be used stale, and at
    /// least `retention` if it can be revalidated.
    public func keepingTime(_ policy: FreshnessPolicy = FreshnessPolicy(), retention: Double) -> Double {
        let control = control
        let left = needsRevalidation ? 0 : timeLeft(after: 0, policy)
        let whileRevalidating = control.staleWhileRevalidate.map(Double.init) ?? policy.staleWhileRevalidate
        let onError = control.staleIfError.map(Double.init) ?? policy.staleIfError
        let usable = left + (forbidsStaleUse ? 0 : max(whileRevalidating, onError))
        return max(0, usable, validators == nil ? 0 : retention)
    }

    /// Returns the freshness of the response after this many seconds in the cache.
    public func freshness(after residentTime: Double, _ policy: FreshnessPolicy = FreshnessPolicy()) -> SourceFreshness
    {
        let control = control
        let left = timeLeft(after: residentTime, policy)
        if left > 0, !needsRevalidation { return .fresh(seconds: left) }
        guard !forbidsStaleUse else { return .stale(whileRevalidating: false, onError: false) }
        func isWithin(_ seconds: Double) -> Bool { -left < seconds }
        return .stale(
            whileRevalidating: isWithin(control.staleWhileRevalidate.map(Double.init) ?? policy.staleWhileRevalidate),
            onError: isWithin(control.staleIfError.map(Double.init) ?? policy.staleIfError))
    }

    private var needsRevalidation: Bool { control.noCache || redirects.noCache }
    private var forbidsStaleUse: Bool {
        control.forbidsStaleUse || redirects.mustRevalidate || redirects.noCache
    }

    /// Returns the remaining seconds of freshness, limited by redirects; at most 0 if the response is stale.
    private func timeLeft(after residentTime: Double, _ policy: FreshnessPolicy) -> Double {
        let own = lifetime(control, policy) - (initialAge + max(0, residentTime))
        let redirects = redirects.sharedMaxAge
        guard redirects != .absent else { return own }
        // Unlike the response's own lifetime, this one starts when the response was received.
        return min(own, Double(redirects.number ?? 0) - max(0, residentTime))
    }

    /// Returns the freshness lifetime for a shared cache (section 4.2.1): s-maxage, else max-age, else Expires, else a
    /// heuristic.
    private func lifetime(_ control: CacheControl, _ policy: FreshnessPolicy) -> Double {
        for age in [control.sharedMaxAge, control.maxAge] {
            switch age {
            case .seconds(let seconds): return Double(seconds)
            case .invalid: return 0
            case .absent: break
            }
        }
        guard let date = headers.first("Date").flatMap({ HTTPDate.seconds(of: $0, now: 0) }) else { return 0 }
        if let expires = headers.first("Expires") {
            // An invalid date lies in the past (section 5.3).
            return (HTTPDate.seconds(of: expires, now: date) ?? date) - date
        }
        // Section 4.2.2.
        let changed = headers.first("Last-Modified").flatMap { HTTPDate.seconds(of: $0, now: date) }
        guard let changed, changed < date else { return 0 }
        return min((date - changed) * policy.heuristicFraction, policy.heuristicLimit)
    }
}

/// The freshness of a stored response.
public enum SourceFreshness: Hashable, Sendable {
    /// The response can be used without revalidation for this many seconds.
    case fresh(seconds: Double)
    /// The response must be revalidated. It may be used during the revalidation or if the origin fails, if the flags
    /// permit.
    case stale(whileRevalidating: Bool, onError: Bool)
}

/// The freshness rules for responses without explicit directives.
public struct FreshnessPolicy: Hashable, Sendable {
    /// The fraction of the time since Last-Modified during which a response without explicit expiration is fresh. The
    /// default 0 disables heuristic freshness. RFC 9111, section 4.2.2, suggests 0.1.
    public var heuristicFraction = 0.0
    /// The maximum heuristic freshness, in seconds.
    public var heuristicLimit = 86_400.0
    /// The seconds of stale use during revalidation, unless the response specifies them.
    public var staleWhileRevalidate = 0.0
    /// The seconds of stale use if the origin fails, unless the response specifies them.
    public var staleIfError = 0.0

    /// Creates a policy that permits only what responses allow.
    public init() {}
}

/// The validators of a response (RFC 9110, section 8.8), used for conditional requests.
public struct Validators: Hashable, Sendable {
    /// The entity tag, including quotes and, if it is weak, `W/`.
    public var etag: String?
    /// The date of the last modification, as received.
    public var lastModified: String?
    /// The provider's name of the resource that sent the validators, which are valid only for this resource (RFC 9110,
    /// section 8.8). Nil if the source has a single resource.
    public var resource: String?

    /// The internal header field of a loaded response that contains the name of its resource. Origins do not send it.
    public static let resourceField = "Halcyon-Resource"

    /// Creates validators.
    public init(etag: String? = nil, lastModified: String? = nil, resource: String? = nil) {
        self.etag = etag
        self.lastModified = lastModified
        self.resource = resource
    }

    /// Creates the validators of a response.
    public init(of headers: HTTPFields) {
        self.init(
            etag: headers.first("ETag"), lastModified: headers.first("Last-Modified"),
            resource: headers.first(Self.resourceField))
    }

    /// True if there is neither an entity tag nor a date, so that conditional requests are impossible.
    public var isEmpty: Bool { etag == nil && lastModified == nil }
}
