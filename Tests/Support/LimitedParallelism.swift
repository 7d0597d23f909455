import Concurrency
import Glibc
import Testing

/// A trait that limits the number of tests that run servers at the same time, across all suites, and records the
/// duration of each test.
///
/// HALCYON_TEST_PARALLELISM sets the number; the default is six per processor, because such tests mostly wait. Tests
/// with Apache Kafka, and those of ``TestTier``'s full tier, take more memory and processor time. Their number is limited
/// separately: by HALCYON_TEST_HEAVY_PARALLELISM, by default to one per processor and one more.
/// HALCYON_TEST_TIMES names a file to which a line is appended for each test case: its seconds, a tab and its name. The
/// durations that Swift Testing prints include the time that a test waits for a permit.
public struct LimitedParallelism: SuiteTrait, TestTrait, TestScoping {
    private static let processors = max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))
    private static let light = PrioritySemaphore(number("HALCYON_TEST_PARALLELISM") ?? 6 * processors)
    private static let heavy = PrioritySemaphore(number("HALCYON_TEST_HEAVY_PARALLELISM") ?? processors + 1)
    private static let times = setting("HALCYON_TEST_TIMES").map {
        open($0, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o644)
    }

    private static func setting(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }
    private static func number(_ name: String) -> Int? { setting(name).flatMap { Int($0) } }

    /// True: the limit applies to each test of a suite.
    public var isRecursive: Bool { true }

    /// Runs a test case once it has a permit.
    public func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        guard testCase != nil else { return try await function() }
        let isHeavy = test.traits.contains { $0 is SharedApacheKafka } || TestTier.isExtended(test)
        let semaphore = isHeavy ? Self.heavy : Self.light
        try await semaphore.acquire()
        defer { semaphore.release() }
        let start = ContinuousClock.now
        defer { Self.record(test, start.duration(to: .now)) }
        let watchdog = Task {
            try await Task.sleep(for: Self.timeLimit)
            Self.giveUp(test)
        }
        defer { watchdog.cancel() }
        try await function()
    }

    /// The time after which the whole run fails, so that a test that waits forever is named.
    private static let timeLimit = Duration.seconds(900)

    private static func giveUp(_ test: Test) -> Never {
        let line = Array("✘ Test \(test.id) recorded an issue: it has not ended within \(timeLimit)\n".utf8)
        _ = write(STDERR_FILENO, line, line.count)
        exit(EXIT_FAILURE)
    }

    private static func record(_ test: Test, _ duration: Duration) {
        guard let times else { return }
        let name = "\(test.id)".split(separator: "/").dropLast().joined(separator: "/")
        let line = Array("\(duration / .seconds(1))\t\(name)\n".utf8)
        _ = write(times, line, line.count)
    }
}

extension Trait where Self == LimitedParallelism {
    /// Limits the number of such tests that run at the same time.
    public static var limitedParallelism: Self { LimitedParallelism() }
}
