import Formats

extension HTTPFields {
    /// True if the loaded response or a redirect to it was `private`.
    public var isPrivate: Bool {
        ["Cache-Control", RedirectLimits.field].contains { CacheControl(self[$0] ?? "").isPrivate }
    }
}

/// The lifetime of a result in the result tier.
public enum ResultTTL: Hashable, Sendable {
    /// A number of seconds above 0, from the completion of the fetch.
    case seconds(Double)
    /// The configured default (`cache.defaultTTL`), because the response has no expiration.
    case standard
    /// The configured default, but at most these seconds, above 0, because only a redirect has an expiration.
    case standardUpTo(Double)
    /// The result is not stored.
    case notStored

    /// Determines the lifetime of a result.
    ///
    /// A `maxAge` above 0 overrides all headers. With 0 the response decides: `max-age` of Cache-Control (RFC 9111,
    /// section 5.2.2.1), else Expires (section 5.3), else the default, limited by redirects (``RedirectLimits``). Below
    /// 0 nothing is stored. `Age` is ignored, because the lifetime of a result starts with its fetch. 2^31 seconds or
    /// more mean no expiration (section 1.2.2).
    ///
    /// - Parameters:
    ///   - maxAge: The job's `maxAge` in seconds.
    ///   - headers: The header fields of the response; repeated fields in order.
    ///   - completedAt: The time when the fetch was completed, in seconds since 1970.
    public init(maxAge: Double, headers: HTTPFields, completedAt: Double) {
        if maxAge > 0 {
            self = .seconds(min(maxAge, Double(DeltaSeconds.greatest)))
        } else if maxAge < 0 {
            self = .notStored
        } else {
            self.init(headers: headers, completedAt: completedAt)
            limit(by: CacheControl(headers[RedirectLimits.field] ?? ""))
        }
    }

    private mutating func limit(by redirects: CacheControl) {
        switch (self, redirects.maxAge) {
        case _ where redirects.forbidsStoring: self = .notStored
        case (.notStored, _), (_, .absent): break
        case (_, .invalid), (_, .seconds(0)): self = .notStored
        case (.seconds(let own), .seconds(let seconds)): self = .seconds(min(own, Double(seconds)))
        case (.standard, .seconds(let seconds)): self = .standardUpTo(Double(seconds))
        case (.standardUpTo(let own), .seconds(let seconds)): self = .standardUpTo(min(own, Double(seconds)))
        }
    }

    private init(headers: HTTPFields, completedAt: Double) {
        let control = CacheControl(headers["Cache-Control"] ?? "")
        guard !control.forbidsStoring else {
            self = .notStored
            return
        }
        switch control.maxAge {
        case .seconds(let seconds): self = seconds > 0 ? .seconds(Double(seconds)) : .notStored
        case .invalid: self = .notStored
        case .absent:
            guard let expires = headers.first("Expires") else {
                self = .standard
                return
            }
            // An invalid date lies in the past (RFC 9111, section 5.3).
            let left = (HTTPDate.seconds(of: expires, now: completedAt) ?? 0) - completedAt
            self = left > 0 ? .seconds(left) : .notStored
        }
    }
}

/// The rule for the lifetime of a job's results, derived from its `maxAge`.
///
/// A stored result is a hit for every job, regardless of its rule. Each result records the rule that determined its
/// expiration, and no rule shortens a lifetime that another rule has set.
public enum ResultTTLPolicy: Hashable, Sendable {
    /// A `maxAge` above 0: these seconds from the time the result was stored, regardless of the response.
    case own(seconds: Double)
    /// A `maxAge` of 0: the lifetime of the response, from the completion of the fetch.
    case response
    /// A `maxAge` below 0: the result is not stored.
    case never

    /// Creates the rule for a job.
    /// - Parameter maxAge: The job's `maxAge` in seconds, rounded to six decimals as in cache keys. 2^31 or more mean
    ///   no expiration (RFC 9111, section 1.2.2).
    public init(maxAge: Double) {
        if maxAge > 0 {
            let seconds = min(maxAge, Double(DeltaSeconds.greatest))
            self = .own(seconds: max(CanonicalNumber.rounded(seconds), 0.000_001))
        } else {
            self = maxAge < 0 ? .never : .response
        }
    }

    /// True if a hit by a job with this rule can extend the lifetime of a result.
    public var canExtend: Bool { if case .own = self { true } else { false } }

    /// The name of the rule in stored results: the number of seconds, formatted as in cache keys, `0`, or `-1`.
    public var name: String {
        var name = ""
        switch self {
        case .own(let seconds): name.append(canonical: seconds)
        case .response: name = "0"
        case .never: name = "-1"
        }
        return name
    }

    /// Returns the TTL of a result in seconds from now, above 0; nil if it is not stored.
    ///
    /// - Parameters:
    ///   - lifetime: The lifetime of the response under this rule.
    ///   - age: The seconds since the fetch was completed, measured on one machine.
    ///   - standard: The default TTL in seconds.
    ///   - cut: The fraction of the lifetime to subtract, 0 to 1, so that results rendered together do not expire
    ///     together. It does not apply to a `maxAge` given by the job.
    public func seconds(of lifetime: ResultTTL, age: Double, standard: Double, cut: Double) -> Double? {
        let whole: Double
        switch (self, lifetime) {
        case (.own(let seconds), _): return seconds
        case (.never, _), (.response, .notStored): return nil
        case (.response, .seconds(let seconds)): whole = seconds
        case (.response, .standard): whole = standard
        case (.response, .standardUpTo(let seconds)): whole = min(standard, seconds)
        }
        let left = whole - max(0, age)
        return left > 0 ? left * (1 - cut) : nil
    }
}
