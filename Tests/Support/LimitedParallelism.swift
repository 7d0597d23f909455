import Concurrency
import Foundation
import Testing

/// A trait that limits the number of tests that run servers at the same time, across all suites, and records the
/// duration of each test.
///
/// HALCYON_TEST_PARALLELISM sets the number; the default is six per processor, because such tests mostly wait. While
/// processors are idle, up to three times as many run. Those of ``TestTier``'s full tier take more memory and processor
/// time. Their number is limited separately: by HALCYON_TEST_HEAVY_PARALLELISM, by default to one per processor and one
/// more. Tests on a shared broker (``SharedApacheKafka``) count as the others, because they have no broker of their own.
/// HALCYON_TEST_TIMES names a file to which a line is appended for each test case: its seconds, a tab and its name. The
/// durations that Swift Testing prints include the time that a test waits for a permit.
public struct LimitedParallelism: SuiteTrait, TestTrait, TestScoping {
    private static let processors = max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))
    private static let light = AdaptiveSemaphore(number("HALCYON_TEST_PARALLELISM") ?? 6 * processors, growth: 3)
    private static let heavy = AdaptiveSemaphore(
        number("HALCYON_TEST_HEAVY_PARALLELISM") ?? processors + 1, growth: 1)
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
        let semaphore = TestTier.isExtended(test) ? Self.heavy : Self.light
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

/// A semaphore that has more permits while processors are idle: one or two more in each half second in which a quarter
/// or a half of the time is idle, and one less if they are busy.
private final class AdaptiveSemaphore: Sendable {
    private let semaphore: PrioritySemaphore
    /// The numbers of permits beyond the minimum that there should be, and that there are.
    private let extra = Lock((wanted: 0, granted: 0))

    /// - Parameter growth: The maximum number of permits, as a multiple of the minimum.
    init(_ permits: Int, growth: Int) {
        semaphore = PrioritySemaphore(permits)
        let most = permits * (growth - 1)
        guard most > 0 else { return }
        Task { [semaphore, extra] in
            var last = ProcessorTime.now
            while true {
                try await Task.sleep(for: .milliseconds(500))
                let now = ProcessorTime.now
                let idle = (now.idle - last.idle) / max(1, now.total - last.total)
                last = now
                let change = idle > 0.5 ? 2 : idle > 0.25 ? 1 : idle < 0.05 ? -1 : 0
                let missing = extra.withLock { extra in
                    extra.wanted = min(max(0, extra.wanted + change), most)
                    let missing = max(0, extra.wanted - extra.granted)
                    extra.granted += missing
                    return missing
                }
                for _ in 0..<missing { semaphore.release() }
            }
        }
    }

    func acquire() async throws { try await semaphore.acquire() }

    func release() {
        let isWithdrawn = extra.withLock { extra in
            guard extra.granted > extra.wanted else { return false }
            extra.granted -= 1
            return true
        }
        if !isWithdrawn { semaphore.release() }
    }
}

/// The time of all processors since the system started, in units of the kernel's.
private struct ProcessorTime {
    var (idle, total) = (0.0, 0.0)

    /// The first line of `/proc/stat` (proc_stat(5)); zeros if it cannot be read, which counts as busy.
    static var now: ProcessorTime {
        let text = String(decoding: FileManager.default.contents(atPath: "/proc/stat") ?? Data(), as: UTF8.self)
        let times = text.prefix { $0 != "\n" }.split(separator: " ").dropFirst().prefix(8).compactMap { Double($0) }
        guard times.count == 8 else { return ProcessorTime() }
        return ProcessorTime(idle: times[3] + times[4], total: times.reduce(0, +))
    }
}
