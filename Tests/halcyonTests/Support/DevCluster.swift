import Glibc
import JSON
import Subprocess
import TestSupport
import Testing

/// `halcyon dev`, started as a user starts it.
struct DevCluster: Sendable {
    /// The one of the suite that has the trait `.devCluster`.
    @TaskLocal static var current: DevCluster!

    let process: ChildProcess
    let folder: TemporaryFolder
    let kafka: String
    let redisPort: UInt16
    /// The URL of its gateway.
    let gateway: String
    /// An origin that serves the sample photographs.
    let origin: Nginx

    /// The embedded broker is asked for records a hundred times a second otherwise: seven of these clusters, idle most of the
    /// time, would take half a processor from the tests.
    private static let rareFetches = "kafka.properties.fetch.wait.max.ms=50"

    static func start() async throws -> DevCluster {
        let origin = try await Nginx.start(serving: Samples.path)
        let folder = TemporaryFolder("dev")
        // With a budget that nothing here comes near: what is trimmed must be known. What fails is seen at once.
        let process = try await Executable.start(
            [
                "dev", "--json", "--set", "cache.maximumBytes=1GiB", "--set", "retry.attempts=1", "--set",
                Self.rareFetches,
            ], in: folder)
        try await until("halcyon dev is ready") {
            !process.isRunning || folder.read("output").contains(UInt8(ascii: "\n"))
        }
        let addresses = try JSON.parse(folder.read("output"), maximumSize: 1 << 16)
        let redis = try #require(addresses.at("redis"))
        return DevCluster(
            process: process, folder: folder, kafka: try #require(addresses.at("kafka")),
            redisPort: try #require(UInt16(redis.drop { $0 != ":" }.dropFirst())),
            gateway: try #require(addresses.at("gateway")), origin: origin)
    }

    /// Stops it as Ctrl-C does.
    func stop() async {
        process.send(SIGINT)
        await process.exit()
        await origin.stop()
        await folder.remove()
    }

    /// Runs a command against this cluster.
    @discardableResult
    func run(_ arguments: String..., input: String? = nil) async throws -> Run {
        try await Executable.run(arguments, input: input, environment: environment)
    }

    var environment: [String: String] {
        ["HALCYON_KAFKA_BROKERS": kafka, "HALCYON_REDIS_URL": "redis://127.0.0.1:\(redisPort)"]
    }

    /// The URL of a sample.
    func url(_ name: String) -> String { "\(origin.url)/\(name)" }
}

/// One cluster for all tests of a suite.
struct DevClusterTrait: SuiteTrait, TestScoping {
    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        let cluster = try await DevCluster.start()
        let result: Result<Void, any Error>
        do { result = .success(try await DevCluster.$current.withValue(cluster, operation: function)) } catch {
            result = .failure(error)
        }
        await cluster.stop()
        try result.get()
    }
}

extension Trait where Self == DevClusterTrait {
    static var devCluster: Self { DevClusterTrait() }
}

/// The photographs that come with the project.
enum Samples {
    static let path = SampleImages.folder
    static let chelsea = "\(path)/chelsea.jpg"
}
