import Formats

/// A response as a shared cache keeps it (RFC 9111), without its body.
///
/// Times are differences, so that caches need no common clock: an age when it was stored, and how long it has lain there
/// since.
public struct StoredResponse: Hashable, Codable, Sendable {
    /// The response's status.
    public var status: Int
    /// The fields that caching is about.
    public private(set) var headers: HTTPFields
    /// The request's fields that the response's Vary names, as they were sent.
    public let varied: HTTPFields
    /// Seconds of age when it was stored: the "corrected initial age" of section 4.2.3.
    public private(set) var initialAge: Double

    /// The fields that are kept.
    public static let keptFields = [
        "Cache-Control", "Expires", "Date", "Age", "ETag", "Last-Modified", "Vary", "Content-Type",
        RedirectLimits.field, Validators.resourceField,
    ]

    /// - Parameters:
    ///   - status: the response's.
    ///   - headers: the response's, of which ``keptFields`` are kept.
    ///   - request: the fields that were sent.
    ///   - requestedAt: when the request was sent, in seconds since 1970.
    ///   - receivedAt: when the response's head had come.
    public init(
        status: Int, headers: HTTPFields, request: HTTPFields, requestedAt: Double, receivedAt: Double
    ) {
        self.status = status
        self.headers = headers.only(Self.keptFields)
        varied = request.only(headers.list("Vary"))
        // Who has a clock and finds no date gives one (RFC 9110, section 6.6.1).
        let date = headers.first("Date").flatMap { HTTPDate.seconds(of: $0, now: receivedAt) } ?? receivedAt
        self.headers["Date"] = HTTPDate.text(of: date)
        let apparentAge = max(0, receivedAt - date)
        let age = Self.seconds(ofAge: headers.first("Age"))
        let responseDelay = max(0, receivedAt - requestedAt)
        initialAge = max(apparentAge, age + responseDelay)
    }

    /// Of several ages the first counts (RFC 9111, section 5.1).
    private static func seconds(ofAge text: String?) -> Double {
        let first = text?.split(separator: ",", maxSplits: 1).first.map { $0.filter { $0 != " " && $0 != "\t" } }
        return max(0, first.flatMap { Double($0) } ?? 0)
    }

    /// As it was kept.
    public init(status: Int, headers: HTTPFields, varied: HTTPFields, initialAge: Double) {
        self.status = status
        self.headers = headers
        self.varied = varied
        self.initialAge = initialAge
    }

    private var control: CacheControl { CacheControl(headers["Cache-Control"] ?? "") }
    /// What redirects on the way leave of it.
    private var redirects: CacheControl { CacheControl(headers[RedirectLimits.field] ?? "") }

    /// Whether a shared cache may keep the response to a GET (section 3).
    ///
    /// - Parameter request: the fields that were sent.
    public func mayBeStored(request: HTTPFields) -> Bool {
        let control = control
        for control in [control, redirects] where control.noStore || control.isPrivate { return false }
        guard !headers.list("Vary").contains("*") else { return false }
        guard request["Authorization"] != nil else { return true }
        // Section 3.5.
        return control.isPublic || control.mustRevalidate || control.sharedMaxAge != .absent
    }

    /// Whether the response is one to a request with these fields (section 4.1).
    public func answers(request: HTTPFields) -> Bool {
        headers.list("Vary").allSatisfy { request[$0].map { Array($0.utf8) } == varied[$0].map { Array($0.utf8) } }
    }

    /// What a next request says to be told whether anything has changed (section 4.3.1); nil where it can say nothing.
    public var validators: Validators? {
        let validators = Validators(of: headers)
        return validators.isEmpty ? nil : validators
    }

    /// The same response after an origin has said with a 304 that it still holds (sections 3.2 and 4.3.4).
    public func confirmed(by notModified: StoredResponse) -> StoredResponse {
        var confirmed = self
        for name in Self.keptFields where notModified.headers[name] != nil {
            confirmed.headers[name] = notModified.headers[name]
        }
        // An age says nothing about a response that came straight from its origin.
        if notModified.headers["Age"] == nil { confirmed.headers["Age"] = nil }
        // The way to it was gone anew.
        confirmed.headers[RedirectLimits.field] = notModified.headers[RedirectLimits.field]
        confirmed.initialAge = notModified.initialAge
        return confirmed
    }

    /// Seconds for which it is of any use to keep it: while it is fresh or may be used stale; and for `retention` where its
    /// origin can be asked whether it still holds.
    public func keepingTime(_ policy: FreshnessPolicy = FreshnessPolicy(), retention: Double) -> Double {
        let control = control
        let left = needsRevalidation ? 0 : timeLeft(after: 0, policy)
        let whileRevalidating = control.staleWhileRevalidate.map(Double.init) ?? policy.staleWhileRevalidate
        let onError = control.staleIfError.map(Double.init) ?? policy.staleIfError
        let usable = left + (forbidsStaleUse ? 0 : max(whileRevalidating, onError))
        return max(0, usable, validators == nil ? 0 : retention)
    }

    /// How the response may be used when it has lain in the cache for so many seconds.
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

    /// Seconds of freshness that are left, its own or those of the redirects on the way; at most 0 when it is stale.
    private func timeLeft(after residentTime: Double, _ policy: FreshnessPolicy) -> Double {
        let own = lifetime(control, policy) - (initialAge + max(0, residentTime))
        let redirects = redirects.sharedMaxAge
        guard redirects != .absent else { return own }
        // Unlike its own life, this one counts from when it had come.
        return min(own, Double(redirects.number ?? 0) - max(0, residentTime))
    }

    /// Section 4.2.1, for a shared cache: s-maxage, else max-age, else Expires, else a heuristic.
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
            // What cannot be read lies in the past (section 5.3).
            return (HTTPDate.seconds(of: expires, now: date) ?? date) - date
        }
        // Section 4.2.2.
        let changed = headers.first("Last-Modified").flatMap { HTTPDate.seconds(of: $0, now: date) }
        guard let changed, changed < date else { return 0 }
        return min((date - changed) * policy.heuristicFraction, policy.heuristicLimit)
    }
}

/// How a stored response may be used.
public enum SourceFreshness: Hashable, Sendable {
    /// As it is, for so many seconds more.
    case fresh(seconds: Double)
    /// Once its origin has confirmed it; sooner while that is going on, or when the origin fails, where it is said so.
    case stale(whileRevalidating: Bool, onError: Bool)
}

/// What responses leave open.
public struct FreshnessPolicy: Hashable, Sendable {
    /// The part of the time since Last-Modified for which a response that says nothing is fresh; 0, the default, for none.
    /// RFC 9111, section 4.2.2, speaks of a tenth.
    public var heuristicFraction = 0.0
    /// Seconds of the longest such freshness.
    public var heuristicLimit = 86_400.0
    /// Seconds of use while it is revalidated, where the response does not say.
    public var staleWhileRevalidate = 0.0
    /// Seconds of use when the origin fails, where the response does not say.
    public var staleIfError = 0.0

    /// The defaults: only what responses allow.
    public init() {}
}

/// What an origin calls the bytes that it gave (RFC 9110, section 8.8): to ask later whether they have changed.
public struct Validators: Hashable, Sendable {
    /// The entity tag, with its quotes and, where it is weak, its `W/`.
    public var etag: String?
    /// The date of the last change, as it was sent.
    public var lastModified: String?
    /// The resource that sent them, by a name of its provider's: they say nothing to any other (RFC 9110, section 8.8). Nil
    /// where a source has but one.
    public var resource: String?

    /// The field in which a loaded response carries the name of its resource. No origin sends it.
    public static let resourceField = "Halcyon-Resource"

    /// Nothing, unless more is given.
    public init(etag: String? = nil, lastModified: String? = nil, resource: String? = nil) {
        self.etag = etag
        self.lastModified = lastModified
        self.resource = resource
    }

    /// Those of a response.
    public init(of headers: HTTPFields) {
        self.init(
            etag: headers.first("ETag"), lastModified: headers.first("Last-Modified"),
            resource: headers.first(Self.resourceField))
    }

    /// Whether nothing can be asked by them.
    public var isEmpty: Bool { etag == nil && lastModified == nil }
}
