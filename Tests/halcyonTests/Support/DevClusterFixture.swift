import Concurrency
import Glibc
import JSON
import Subprocess
import TestSupport
import Testing

/// A cluster of `halcyon dev`, started like a user starts it, and an origin.
struct DevClusterFixture: Sendable {
    /// The cluster of the suite that has the trait `.devCluster`.
    @TaskLocal static var current: DevClusterFixture!

    let process: ChildProcess
    let folder: TemporaryFolder
    let kafka: String
    let redisPort: UInt16
    /// The URL of its gateway.
    let gateway: String
    /// An origin that serves the sample photographs.
    let origin: Nginx

    static func start() async throws -> DevClusterFixture {
        let origin = try await Nginx.start(serving: Samples.path)
        let folder = TemporaryFolder("dev")
        let settings = [
            // A budget far above the use of the tests records results for `trim`.
            "cache.maximumBytes=1GiB",
            // Jobs fail immediately.
            "retry.attempts=1",
            // Jobs whose origin does not answer stay in flight, however slow the machine is.
            "sources.timeout=10m", "sources.stallTimeout=10m",
            // At 50 ms, ten of these clusters, idle most of the time, used a third of a processor.
            "kafka.properties.fetch.wait.max.ms=150",
        ]
        let process = try await Executable.start(
            ["dev", "--json", "--environment", "\(folder.path)/dev.env"] + settings.flatMap { ["--set", $0] },
            in: folder)
        try await until("halcyon dev is ready") {
            !process.isRunning || folder.read("output").contains(UInt8(ascii: "\n"))
        }
        let addresses = try JSON.parse(folder.read("output"), maximumSize: 1 << 16)
        let redis = try #require(addresses.at("redis"))
        return DevClusterFixture(
            process: process, folder: folder, kafka: try #require(addresses.at("kafka")),
            redisPort: try #require(UInt16(redis.drop { $0 != ":" }.dropFirst())),
            gateway: try #require(addresses.at("gateway")), origin: origin)
    }

    /// Stops the cluster like Ctrl-C does.
    func stop() async {
        process.send(SIGINT)
        await process.exit()
        await origin.stop()
        await folder.remove()
    }

    /// Runs a command on this cluster.
    @discardableResult
    func run(_ arguments: String..., input: String? = nil) async throws -> Run {
        try await Executable.run(arguments, input: input, environment: environment)
    }

    /// Waits until the worker has handled all control messages that have been sent. It reads them in order and replies
    /// to a later one.
    func controlMessagesAreHandled() async throws {
        try await until("the worker has replied") {
            let jobs = try await run("jobs", "--timeout", "60s")
            return jobs.exit == .code(0) && jobs.output.hasSuffix(" on 1 worker\n")
        }
    }

    /// The variables for other commands, with a timeout of Redis for busy machines.
    var environment: [String: String] {
        ["HALCYON_KAFKA_BROKERS": kafka, "HALCYON_REDIS_URL": "redis://127.0.0.1:\(redisPort)?timeout=60s"]
    }

    /// The port of its gateway.
    var gatewayPort: UInt16? { UInt16(gateway.split(separator: ":").last ?? "") }

    /// Returns the whole response of its gateway to a GET request, as text.
    func response(to path: String) async throws -> String {
        let port = try #require(gatewayPort)
        return try await blocking {
            let request = "GET \(path) HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
            return Executable.text(try Exchange.bytes(request, port: port))
        }
    }

    /// Returns the URL of a sample photograph.
    func url(_ name: String) -> String { "\(origin.url)/\(name)" }
}

/// A trait that starts one cluster for all tests of a suite.
struct DevClusterTrait: SuiteTrait, TestScoping {
    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        let cluster = try await DevClusterFixture.start()
        let result: Result<Void, any Error>
        do { result = .success(try await DevClusterFixture.$current.withValue(cluster, operation: function)) } catch {
            result = .failure(error)
        }
        await cluster.stop()
        try result.get()
    }
}

extension Trait where Self == DevClusterTrait {
    static var devCluster: Self { DevClusterTrait() }
}

/// The sample photographs of the project.
enum Samples {
    static let path = SampleImages.folder
    static let chelsea = "\(path)/chelsea.jpg"
}
