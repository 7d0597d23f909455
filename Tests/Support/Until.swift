extension Duration {
    /// The longest time that tests wait for something: a safety net, long enough for a busy machine.
    public static let patience = Duration.seconds(120)
}

/// An error for a condition that did not become true in time, or for a failed step of a test's setup.
public struct ConditionTimeout: Error, CustomStringConvertible {
    /// The condition or the failure.
    public let description: String

    /// Creates an error with a description.
    public init(description: String) { self.description = description }
}

/// Checks repeatedly if `condition` is true, and returns as soon as it is. The longer it takes, the rarer the checks:
/// one in 10 ms at first, one in 100 ms after a second.
/// - Parameter what: A description for the error, evaluated when it is thrown.
/// - Throws: ``ConditionTimeout`` if the condition is not true within `limit`. Errors thrown by the condition count as
///   false.
public func until(
    _ what: @autoclosure @Sendable () -> String, within limit: Duration = .patience,
    _ condition: @Sendable () async throws -> Bool
) async throws {
    try await firstValue(what(), within: limit) { () async throws -> Void? in try await condition() ? () : nil }
}

/// Calls `value` repeatedly, at the intervals of ``until(_:within:_:)``, and returns its first value that is not nil:
/// for assertions about a state that may have changed when it is read again.
/// - Parameter what: A description for the error, evaluated when it is thrown.
/// - Throws: ``ConditionTimeout`` if there is no value within `limit`. Errors thrown by `value` count as nil.
public func firstValue<Value: Sendable>(
    _ what: @autoclosure @Sendable () -> String, within limit: Duration = .patience,
    _ value: @Sendable () async throws -> Value?
) async throws -> Value {
    let start = ContinuousClock.now
    while case let elapsed = start.duration(to: .now), elapsed < limit {
        if let found = try? await value() { return found }
        try await Task.sleep(for: min(max(elapsed / 10, .milliseconds(10)), .milliseconds(100)))
    }
    throw ConditionTimeout(description: "condition not met within \(limit): \(what())")
}
