import HTTPFields

extension HTTPFields {
    /// Whether a loaded response, or a redirect that led to it, was for one reader alone.
    public var isPrivate: Bool {
        ["Cache-Control", RedirectLimits.field].contains { CacheControl(self[$0] ?? "").isPrivate }
    }
}

/// How long the result tier keeps a result.
public enum ResultLifetime: Hashable, Sendable {
    /// This many seconds from the moment the fetch was complete, above 0.
    case seconds(Double)
    /// Nothing said how long: the configured default (`cache.defaultTTL`).
    case standard
    /// Nothing but a redirect said how long: the configured default, or these seconds, above 0, if they are fewer.
    case standardUpTo(Double)
    /// Not at all.
    case notStored

    /// The rule of the result tier: a job's own `maxAge` above 0 wins over all headers; 0 follows the response, Cache-Control's
    /// max-age first (RFC 9111, section 5.2.2.1), else Expires (section 5.3), else the default; below 0 nothing is stored.
    /// What redirects on the way leave of it counts beside that (``RedirectLimits``).
    /// `Age` does not count: the life of a result starts with its fetch. 2^31 seconds and more mean "for ever" (section 1.2.2).
    ///
    /// - Parameters:
    ///   - maxAge: the job's, in seconds.
    ///   - headers: the response's; repeated fields in order.
    ///   - completedAt: when the fetch was complete, in seconds since 1970.
    public init(maxAge: Double, headers: HTTPFields, completedAt: Double) {
        if maxAge > 0 {
            self = .seconds(min(maxAge, Double(CacheControl.greatestSeconds)))
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
            // A date that cannot be read lies in the past (RFC 9111, section 5.3).
            let left = (HTTPDate.seconds(of: expires, now: completedAt) ?? 0) - completedAt
            self = left > 0 ? .seconds(left) : .notStored
        }
    }
}
