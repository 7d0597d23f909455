/// Something did not come true in time.
public struct NotInTime: Error, CustomStringConvertible {
    /// What was waited for.
    public let description: String

    /// This did not.
    public init(description: String) { self.description = description }
}

/// Looks every 20 ms whether `condition` holds. The limit only ends what would not end: a busy machine has all the time it needs.
/// - Throws: ``NotInTime`` when it does not within `limit`; what the condition throws counts as "not yet".
public func until(
    _ what: String, within limit: Duration = .seconds(120), _ condition: @Sendable () async throws -> Bool
) async throws {
    let end = ContinuousClock.now + limit
    while ContinuousClock.now < end {
        if (try? await condition()) == true { return }
        try await Task.sleep(for: .milliseconds(20))
    }
    throw NotInTime(description: "not within \(limit): \(what)")
}
