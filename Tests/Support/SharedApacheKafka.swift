import Concurrency
import Glibc
import Testing

/// A trait that starts Apache Kafka before the first test of a suite. Without KAFKA_HOME it does nothing.
///
/// All suites share one broker, because each broker needs a Java VM and time to start. Their topics, groups and
/// transactional ids must have unique names, and they must not stop the broker.
public struct SharedApacheKafka: SuiteTrait, TestScoping {
    /// The broker of the running test's suite.
    @TaskLocal public static var current: ApacheKafka?

    /// A prefix for names of topics and groups that no other test uses.
    public static func uniquePrefix() -> String {
        counter.withLock { count in
            count += 1
            return "test\(count)."
        }
    }
    private static let counter = Lock(0)

    /// True if the broker is not shared with other suites.
    fileprivate let isExclusive: Bool

    /// Runs the suite while the broker runs.
    public func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        guard ApacheKafka.isAvailable else { return try await function() }
        guard isExclusive else {
            let apache = try await Self.shared.value
            return try await Self.$current.withValue(apache) { try await function() }
        }
        let apache = try await Self.start()
        let result: Result<Void, any Error>
        do {
            result = .success(try await Self.$current.withValue(apache) { try await function() })
        } catch {
            result = .failure(error)
        }
        await apache.remove()
        try result.get()
    }

    /// The broker of all suites that share one. It is started by the first of them and runs until this process exits,
    /// because a start takes seconds of processor time.
    private static let shared = Task {
        let apache = try await start()
        leftover.withLock { $0 = apache }
        atexit { SharedApacheKafka.leftover.withLock { $0?.removeImmediately() } }
        return apache
    }
    private static let leftover = Lock<ApacheKafka?>(nil)

    private static func start() async throws -> ApacheKafka {
        let apache = try await ApacheKafka()
        do { try await apache.start() } catch {
            await apache.remove()
            throw error
        }
        return apache
    }
}

extension Trait where Self == SharedApacheKafka {
    /// A suite whose tests share an Apache Kafka broker with each other and with other suites.
    public static var sharedApacheKafka: Self { SharedApacheKafka(isExclusive: false) }
    /// A suite whose tests share an Apache Kafka broker with each other only.
    public static var ownApacheKafka: Self { SharedApacheKafka(isExclusive: true) }
}
