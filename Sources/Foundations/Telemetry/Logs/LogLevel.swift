/// How much a log record matters.
public enum LogLevel: String, CaseIterable, Comparable, Sendable {
    /// Every step.
    case trace
    /// For finding faults.
    case debug
    /// What happens in the ordinary course.
    case info
    /// Rare and good to know: starts, stops, changes of state.
    case notice
    /// Something went wrong and was dealt with.
    case warning
    /// Something went wrong and somebody is not served.
    case error
    /// The process cannot go on.
    case critical

    /// By weight.
    public static func < (left: LogLevel, right: LogLevel) -> Bool { left.weight < right.weight }

    private var weight: Int {
        switch self {
        case .trace: 0
        case .debug: 1
        case .info: 2
        case .notice: 3
        case .warning: 4
        case .error: 5
        case .critical: 6
        }
    }
}
