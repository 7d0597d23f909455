import Testing

/// Starts Apache Kafka before the first test of the suite and removes it after the last. Without KAFKA_HOME there is none.
public struct SharedApacheKafka: SuiteTrait, TestScoping {
    /// The one that the suite of the running test has.
    @TaskLocal public static var current: ApacheKafka?

    /// Runs the suite beside it.
    public func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        guard ApacheKafka.isAvailable else { return try await function() }
        let apache = try await ApacheKafka()
        do {
            try await apache.start()
            try await Self.$current.withValue(apache) { try await function() }
        } catch {
            await apache.remove()
            throw error
        }
        await apache.remove()
    }
}

extension Trait where Self == SharedApacheKafka {
    /// The suite's tests have one Apache Kafka together.
    public static var sharedApacheKafka: Self { SharedApacheKafka() }
}
