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
