import Concurrency
import Testing

/// Lets only a few tests that run servers or burn processors go on at once, however many suites there are: a machine with two
/// processors that runs all of them together keeps none of their time limits.
public struct LimitedParallelism: SuiteTrait, TestTrait, TestScoping {
    private static let semaphore = PrioritySemaphore(3)

    /// Holds for the tests of a suite, one by one.
    public var isRecursive: Bool { true }

    /// Runs a test when it is its turn.
    public func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        guard testCase != nil else { return try await function() }
        try await Self.semaphore.acquire()
        defer { Self.semaphore.release() }
        try await function()
    }
}

extension Trait where Self == LimitedParallelism {
    /// The test waits for its turn.
    public static var limitedParallelism: Self { LimitedParallelism() }
}
