import Formats

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

/// By which rule a job keeps its results: what its `maxAge` comes to.
///
/// A result that is there is a hit for every job, whatever its rule. But each result names the rule whose expiry it has, and no
/// rule cuts the life short that another has given.
public enum ResultRule: Hashable, Sendable {
    /// A `maxAge` above 0: for these seconds from the moment the result was stored, whatever the response said.
    case own(seconds: Double)
    /// A `maxAge` of 0: for as long as the response said, from the moment its fetch was complete.
    case response
    /// A `maxAge` below 0: not at all.
    case never

    /// - Parameter maxAge: the job's, in seconds. It is taken to the six decimals that keys know; 2^31 and more mean "for ever"
    ///   (RFC 9111, section 1.2.2).
    public init(maxAge: Double) {
        if maxAge > 0 {
            let seconds = min(maxAge, Double(CacheControl.greatestSeconds))
            self = .own(seconds: max(CanonicalNumber.rounded(seconds), 0.000_001))
        } else {
            self = maxAge < 0 ? .never : .response
        }
    }

    /// Whether a hit by it can let a result live longer.
    public var canExtend: Bool { if case .own = self { true } else { false } }

    /// What results call it: the number of seconds as keys write it, `0`, or `-1`.
    public var name: String {
        var name = ""
        switch self {
        case .own(let seconds): name.append(canonical: seconds)
        case .response: name = "0"
        case .never: name = "-1"
        }
        return name
    }

    /// For how many seconds from now a result is stored, above 0; nil when it is not.
    ///
    /// - Parameters:
    ///   - lifetime: of the response under this rule.
    ///   - age: seconds since the fetch was complete, by the clock of one machine.
    ///   - standard: seconds where nothing said how long.
    ///   - cut: part of the life to take off, 0 to 1, so that results made together do not all go together. What a job says
    ///     itself is kept to.
    public func seconds(of lifetime: ResultLifetime, age: Double, standard: Double, cut: Double) -> Double? {
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
