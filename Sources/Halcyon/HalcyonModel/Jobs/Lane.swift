/// A priority, chosen by the topic a job is written to.
public enum Lane: String, CaseIterable, Sendable {
    /// Before everything else.
    case high
    /// The usual one.
    case normal
    /// When there is time.
    case low

    /// How urgent it is: 0 for the most urgent.
    public var level: Int {
        switch self {
        case .high: 0
        case .normal: 1
        case .low: 2
        }
    }

    /// The topic of the lane behind the configured prefix: `jobs.high`, `jobs`, `jobs.low`.
    public var topic: String { self == .normal ? "jobs" : "jobs.\(rawValue)" }
}
