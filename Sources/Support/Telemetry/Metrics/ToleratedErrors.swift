/// Errors of an operation that are tolerated: each is counted, and one per minute is logged.
public final class ToleratedErrors: Sendable {
    private let counter: Counter
    private let log: Log
    private let throttle = LogThrottle()

    /// Registers the counter `halcyon_tolerated_errors_total`.
    /// - Parameter operation: The value of the label, from a small fixed set.
    public init(of operation: String, log: Log, metrics: Metrics) {
        counter = metrics.counter(
            "halcyon_tolerated_errors_total",
            help: "Tolerated errors, by the operation that failed.", labels: ["operation": operation])
        self.log = log.with(["operation": operation])
    }

    /// An instance for programs without metrics.
    public static let silent = ToleratedErrors(of: "none", log: .silent, metrics: Metrics())

    /// Runs an operation that may fail. The cancellation of the task is not an error.
    /// - Returns: The result of `body`; nil after an error.
    @discardableResult
    public func tolerating<Outcome>(_ body: () async throws -> Outcome) async -> Outcome? {
        do {
            return try await body()
        } catch {
            if !Task.isCancelled { note(error) }
            return nil
        }
    }

    private func note(_ error: any Error) {
        counter.add()
        guard let unlogged = throttle.next() else { return }
        log.warning(
            "an error was tolerated", ["error_type": "\(type(of: error))", "error": "\(error)", "unlogged": unlogged])
    }
}
