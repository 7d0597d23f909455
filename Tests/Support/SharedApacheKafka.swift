import Concurrency
import Glibc
import Testing

/// A trait that gives a test, or all tests of a suite, an Apache Kafka broker that other tests use too, because each
/// broker needs a Java VM and takes seconds of processor time to start. Without KAFKA_HOME it does nothing.
///
/// The first test that needs a broker starts it, and it runs until this process exits. Topics, groups and transactional
/// ids must have names that no other test uses.
public struct SharedApacheKafka: SuiteTrait, TestTrait, TestScoping {
    /// A broker with settings of its own.
    fileprivate enum Kind {
        /// For tests that do not stop it.
        case standard
        /// For tests that kill it, one after another.
        case killable
        /// It rejects commits whose metadata is longer than 12 bytes.
        case withLittleMetadata

        fileprivate func broker() async throws -> ApacheKafka {
            switch self {
            case .standard:
                try await ApacheKafka(properties: [
                    "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                    "allow.everyone.if.no.acl.found=true",
                    // How often it looks for transactions that have expired; by default every ten seconds.
                    "transaction.abort.timed.out.transaction.cleanup.interval.ms=500",
                ])
            case .killable: try await ApacheKafka(hasOwnController: true)
            case .withLittleMetadata: try await ApacheKafka(properties: ["offset.metadata.max.bytes=12"])
            }
        }
    }

    /// The broker of the running test.
    @TaskLocal public static var current: ApacheKafka?

    /// A prefix for names of topics and groups that no other test uses.
    public static func uniquePrefix() -> String {
        counter.withLock { count in
            count += 1
            return "test\(count)."
        }
    }
    private static let counter = Lock(0)

    fileprivate let kind: Kind

    /// Runs the test or the suite while the broker runs.
    public func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        guard ApacheKafka.isAvailable else { return try await function() }
        guard kind == .killable else { return try await run(function) }
        try await Self.killing.acquire()
        defer { Self.killing.release() }
        try await run(function)
    }

    private func run(_ function: @Sendable () async throws -> Void) async throws {
        let broker = try await Self.broker(kind).value
        // A test that failed may have left it killed.
        if !broker.isRunning { try await broker.start() }
        try await Self.$current.withValue(broker) { try await function() }
    }

    private static let killing = PrioritySemaphore(1)
    private static let brokers = Lock<[Kind: Task<ApacheKafka, any Error>]>([:])
    private static let leftover = Lock<[ApacheKafka]>([])
    /// Registered once, on the first access.
    private static let removesLeftoverAtExit =
        atexit { SharedApacheKafka.leftover.withLock { $0.forEach { $0.removeImmediately() } } } == 0

    private static func broker(_ kind: Kind) -> Task<ApacheKafka, any Error> {
        brokers.withLock { brokers in
            if let broker = brokers[kind] { return broker }
            let broker = Task {
                let broker = try await kind.broker()
                _ = removesLeftoverAtExit
                leftover.withLock { $0.append(broker) }
                try await broker.start()
                return broker
            }
            brokers[kind] = broker
            return broker
        }
    }
}

extension Trait where Self == SharedApacheKafka {
    /// A broker for tests that do not stop it.
    public static var sharedApacheKafka: Self { SharedApacheKafka(kind: .standard) }
    /// A broker for tests that may kill it. They run one after another and wait for their turn, so this trait stands
    /// before `.limitedParallelism`, in the test or in a suite without that trait.
    public static var killableApacheKafka: Self { SharedApacheKafka(kind: .killable) }
    /// A broker that rejects commits whose metadata is longer than 12 bytes.
    public static var apacheKafkaWithLittleMetadata: Self { SharedApacheKafka(kind: .withLittleMetadata) }
}
