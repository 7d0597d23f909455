import Concurrency
import Testing

/// Starts Apache Kafka before the first test of the suite and removes it after the last. Without KAFKA_HOME there is none.
///
/// Suites that share one have the same one while they go on at the same time: each broker takes a Java machine and its
/// time. Their topics, groups and transactional ids must have names of their own, and they must not stop it.
public struct SharedApacheKafka: SuiteTrait, TestScoping {
    /// The one that the suite of the running test has.
    @TaskLocal public static var current: ApacheKafka?

    private static let users = Users()
    /// Whether no other suite has it.
    fileprivate let isOwn: Bool

    /// Runs the suite beside it.
    public func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        guard ApacheKafka.isAvailable else { return try await function() }
        let users = isOwn ? Users() : Self.users
        let result: Result<Void, any Error>
        do {
            let apache = try await users.enter()
            result = .success(try await Self.$current.withValue(apache) { try await function() })
        } catch {
            result = .failure(error)
        }
        await users.leave()
        try result.get()
    }

    /// The suites that have it now.
    private actor Users {
        private var count = 0
        private var broker: Task<ApacheKafka, any Error>?

        func enter() async throws -> ApacheKafka {
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

        func leave() async {
            count -= 1
            guard count == 0, let last = broker else { return }
            broker = nil
            if case .success(let apache) = await last.result { await apache.remove() }
        }
    }
}

extension Trait where Self == SharedApacheKafka {
    /// The suite's tests have one Apache Kafka together, and with other suites.
    public static var sharedApacheKafka: Self { SharedApacheKafka(isOwn: false) }
    /// The suite's tests have one Apache Kafka together, and nobody else has.
    public static var ownApacheKafka: Self { SharedApacheKafka(isOwn: true) }
}
