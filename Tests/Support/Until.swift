/// An error for a condition that did not become true in time, or for a failed step of a test's setup.
public struct ConditionTimeout: Error, CustomStringConvertible {
    /// The condition or the failure.
    public let description: String

    /// Creates an error with a description.
    public init(description: String) { self.description = description }
}

/// Checks every 20 ms if `condition` is true, and returns as soon as it is. The limit is only a safety net: it is long
/// enough for a busy machine.
/// - Parameter what: A description for the error, evaluated when it is thrown.
/// - Throws: ``ConditionTimeout`` if the condition is not true within `limit`. Errors thrown by the condition count as
///   false.
public func until(
    _ what: @autoclosure @Sendable () -> String, within limit: Duration = .seconds(120),
    _ condition: @Sendable () async throws -> Bool
) async throws {
    let end = ContinuousClock.now + limit
    while ContinuousClock.now < end {
        if (try? await condition()) == true { return }
        try await Task.sleep(for: .milliseconds(20))
    }
    throw ConditionTimeout(description: "condition not met within \(limit): \(what())")
}
