import Concurrency
import Testing

/// A trait that starts Apache Kafka before the first test of a suite and removes it after the last. Without KAFKA_HOME
/// it does nothing.
///
/// Suites that run at the same time share one broker, because each broker needs a Java VM and time to start. Their
/// topics, groups and transactional ids must have unique names, and they must not stop the broker.
public struct SharedApacheKafka: SuiteTrait, TestScoping {
    /// The broker of the running test's suite.
    @TaskLocal public static var current: ApacheKafka?

    private static let sharedBroker = BrokerReference()
    /// True if the broker is not shared with other suites.
    fileprivate let isExclusive: Bool

    /// Runs the suite while the broker runs.
    public func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        guard ApacheKafka.isAvailable else { return try await function() }
        let reference = isExclusive ? BrokerReference() : Self.sharedBroker
        let result: Result<Void, any Error>
        do {
            let apache = try await reference.acquire()
            result = .success(try await Self.$current.withValue(apache) { try await function() })
        } catch {
            result = .failure(error)
        }
        await reference.release()
        try result.get()
    }

    /// A reference-counted broker: started by the first suite that acquires it, removed when the last one releases it.
    private actor BrokerReference {
        private var count = 0
        private var broker: Task<ApacheKafka, any Error>?

        func acquire() async throws -> ApacheKafka {
            count += 1
            let starting =
                broker
                ?? Task {
                    let apache = try await ApacheKafka()
                    do { try await apache.start() } catch {
                        await apache.remove()
                        throw error
                    }
                    return apache
                }
            broker = starting
            return try await starting.value
        }

        func release() async {
            count -= 1
            guard count == 0, let last = broker else { return }
            broker = nil
            if case .success(let apache) = await last.result { await apache.remove() }
        }
    }
}

extension Trait where Self == SharedApacheKafka {
    /// A suite whose tests share an Apache Kafka broker with each other and with other suites.
    public static var sharedApacheKafka: Self { SharedApacheKafka(isExclusive: false) }
    /// A suite whose tests share an Apache Kafka broker with each other only.
    public static var ownApacheKafka: Self { SharedApacheKafka(isExclusive: true) }
}
