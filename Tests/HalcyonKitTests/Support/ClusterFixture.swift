import Foundation
import FoundationNetworking
import Glibc
import HalcyonKit
import Subprocess
import TestSupport
import Testing

/// A cluster of `halcyon dev` with an origin of sample photographs, for tests of clients.
struct ClusterFixture: Sendable {
    /// The cluster of the suite that has the trait `.cluster`.
    @TaskLocal static var current: ClusterFixture!

    private struct Addresses: Decodable {
        let kafka, redis, gateway: String
    }

    let process: ChildProcess
    let folder: TemporaryFolder
    let origin: Nginx
    let kafka: String
    let redis: String
    /// The URL of its gateway, which requires no key.
    let gateway: URL

    /// A short session timeout, though longer than a busy machine stalls. Gateways track the ends of jobs as a consumer
    /// group. When one crashes, the others get its partitions after this time.
    private static let sessionTimeout = ["--set", "kafka.properties.session.timeout.ms=12000"]
    /// A longer wait of fetches. By default the embedded broker gets a hundred fetch requests a second, even when idle.
    private static let fetchWait = ["--set", "kafka.properties.fetch.wait.max.ms=50"]

    /// Jobs whose origin does not answer stay in flight, however slow the machine is.
    private static let sourceTimeouts = ["--set", "sources.timeout=10m", "--set", "sources.stallTimeout=10m"]

    static func start() async throws -> ClusterFixture {
        let origin = try await Nginx.start(serving: SampleImages.folder)
        let folder = TemporaryFolder("clients")
        let process = try await start(
            ["dev", "--json", "--set", "retry.attempts=1"] + sourceTimeouts + sessionTimeout + fetchWait, in: folder)
        try await until("halcyon dev is ready") {
            !process.isRunning || folder.read("output").contains(UInt8(ascii: "\n"))
        }
        let line = Data(folder.read("output"))
        let addresses = try #require(
            try? JSONDecoder().decode(Addresses.self, from: line),
            "\(String(decoding: folder.read("errors"), as: UTF8.self))")
        return ClusterFixture(
            process: process, folder: folder, origin: origin, kafka: addresses.kafka, redis: addresses.redis,
            gateway: try #require(URL(string: addresses.gateway)))
    }

    /// Starts the program, which writes `output` and `errors` to the folder.
    fileprivate static func start(
        _ arguments: [String], _ environment: [String: String] = [:], in folder: TemporaryFolder
    ) async throws -> ChildProcess {
        var options = ChildProcess.Options()
        options.environment = ["PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": folder.path, "TMPDIR": folder.path]
            .merging(environment) { $1 }
        let line = #"cd "$0" && exec "$@" >output 2>>errors"#
        return try await ChildProcess.start(
            "/bin/sh", ["-c", line, folder.path, HalcyonExecutable.path] + arguments, options: options)
    }

    /// Starts another gateway of this cluster on a port of 127.0.0.1 and waits until it is ready.
    func startGateway(
        on port: UInt16, _ settings: [String: String] = [:], in folder: TemporaryFolder = TemporaryFolder("gateway")
    ) async throws -> ChildProcess {
        let environment = [
            "HALCYON_KAFKA_BROKERS": kafka, "HALCYON_REDIS_URL": "redis://\(redis)?timeout=60s",
            "HALCYON_GATEWAY_LISTEN": "127.0.0.1:\(port)",
        ].merging(settings) { $1 }
        let process = try await Self.start(
            ["gateway"] + Self.sessionTimeout, environment, in: folder)
        let url = URL(string: "http://127.0.0.1:\(port)/readyz")!
        try await until("the gateway is ready") {
            let (_, response) = try await URLSession.shared.data(from: url)
            return (response as? HTTPURLResponse)?.statusCode == 200
        }
        return process
    }

    /// A client of its gateway.
    var client: HalcyonClient { HalcyonClient(gateway) }

    /// Returns the source for a sample photograph.
    func url(_ name: String) -> ImageJob.Source { ImageJob.Source("\(origin.url)/\(name)") }

    func stop() async {
        process.send(SIGINT)
        await process.exit()
        await origin.stop()
        await folder.remove()
    }
}

/// A trait that starts one cluster for all tests of a suite.
struct ClusterTrait: SuiteTrait, TestScoping {
    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        let cluster = try await ClusterFixture.start()
        let result: Result<Void, any Error>
        do { result = .success(try await ClusterFixture.$current.withValue(cluster, operation: function)) } catch {
            result = .failure(error)
        }
        await cluster.stop()
        try result.get()
    }
}

/// The tests of clients that need a cluster, which they share.
@Suite(.cluster, .limitedParallelism) enum ClusterTests {}

extension Trait where Self == ClusterTrait {
    static var cluster: Self { ClusterTrait() }
}

/// Returns the client error that `body` throws.
func errorOf<Value>(
    sourceLocation: SourceLocation = #_sourceLocation, _ body: () async throws -> Value
) async throws -> HalcyonError {
    do {
        let value = try await body()
        Issue.record("no error, but \(value)", sourceLocation: sourceLocation)
        throw CancellationError()
    } catch let error as HalcyonError { return error }
}

/// Returns the problem details that `body` throws.
func problemOf<Value>(
    sourceLocation: SourceLocation = #_sourceLocation, _ body: () async throws -> Value
) async throws -> HalcyonClient.ProblemDetails {
    guard case .problem(let problem) = try await errorOf(sourceLocation: sourceLocation, body) else {
        Issue.record("no problem details", sourceLocation: sourceLocation)
        throw CancellationError()
    }
    return problem
}
