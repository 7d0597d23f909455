import Foundation
import FoundationNetworking
import Glibc
import HalcyonKit
import Subprocess
import TestSupport
import Testing

/// `halcyon dev` with an origin of photographs, for clients of it.
struct ClientCluster: Sendable {
    /// The one of the suite that has the trait `.cluster`.
    @TaskLocal static var current: ClientCluster!

    private struct Addresses: Decodable {
        let kafka, redis, gateway: String
    }

    let process: ChildProcess
    let folder: TemporaryFolder
    let origin: Nginx
    let kafka: String
    let redis: String
    /// Its gateway, which asks for no key.
    let gateway: URL

    /// Gateways note the ends of jobs as a group: when one dies, the others have its part when Kafka has noticed.
    private static let noticesDeaths = ["--set", "kafka.properties.session.timeout.ms=6000"]
    /// The embedded broker is asked for records a hundred times a second otherwise, also while nothing happens.
    private static let rareFetches = ["--set", "kafka.properties.fetch.wait.max.ms=50"]

    static func start() async throws -> ClientCluster {
        let origin = try await Nginx.start(serving: SampleImages.folder)
        let folder = TemporaryFolder("clients")
        let process = try await start(
            ["dev", "--json", "--set", "retry.attempts=1", "--set", "sources.stallTimeout=10m"] + noticesDeaths
                + rareFetches,
            in: folder)
        try await until("halcyon dev is ready") {
            !process.isRunning || folder.read("output").contains(UInt8(ascii: "\n"))
        }
        let line = Data(folder.read("output"))
        let addresses = try #require(
            try? JSONDecoder().decode(Addresses.self, from: line),
            "\(String(decoding: folder.read("errors"), as: UTF8.self))")
        return ClientCluster(
            process: process, folder: folder, origin: origin, kafka: addresses.kafka, redis: addresses.redis,
            gateway: try #require(URL(string: addresses.gateway)))
    }

    /// Starts the program with its streams in files of a folder.
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

    /// Starts another gateway of this cluster, on a port of 127.0.0.1, and waits until it serves.
    func startGateway(
        on port: UInt16, _ settings: [String: String] = [:], in folder: TemporaryFolder = TemporaryFolder("gateway")
    ) async throws -> ChildProcess {
        let environment = [
            "HALCYON_KAFKA_BROKERS": kafka, "HALCYON_REDIS_URL": "redis://\(redis)",
            "HALCYON_GATEWAY_LISTEN": "127.0.0.1:\(port)",
        ].merging(settings) { $1 }
        let process = try await Self.start(
            ["gateway"] + Self.noticesDeaths, environment, in: folder)
        let url = URL(string: "http://127.0.0.1:\(port)/readyz")!
        try await until("the gateway serves") {
            let (_, response) = try await URLSession.shared.data(from: url)
            return (response as? HTTPURLResponse)?.statusCode == 200
        }
        return process
    }

    /// A client of its gateway.
    var client: HalcyonClient { HalcyonClient(gateway) }

    /// The URL of a photograph.
    func url(_ name: String) -> ImageJob.Source { ImageJob.Source("\(origin.url)/\(name)") }

    func stop() async {
        process.send(SIGINT)
        await process.exit()
        await origin.stop()
        await folder.remove()
    }
}

/// One cluster for all tests of a suite.
struct ClusterTrait: SuiteTrait, TestScoping {
    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        let cluster = try await ClientCluster.start()
        let result: Result<Void, any Error>
        do { result = .success(try await ClientCluster.$current.withValue(cluster, operation: function)) } catch {
            result = .failure(error)
        }
        await cluster.stop()
        try result.get()
    }
}

/// The tests of clients that need a cluster, all on one.
@Suite(.cluster, .limitedParallelism) enum ClusterTests {}

extension Trait where Self == ClusterTrait {
    static var cluster: Self { ClusterTrait() }
}

/// The client's error that `body` throws.
func errorOf<Value>(
    sourceLocation: SourceLocation = #_sourceLocation, _ body: () async throws -> Value
) async throws -> HalcyonError {
    do {
        let value = try await body()
        Issue.record("no error, but \(value)", sourceLocation: sourceLocation)
        throw CancellationError()
    } catch let error as HalcyonError { return error }
}

/// The problem that `body` throws.
func problemOf<Value>(
    sourceLocation: SourceLocation = #_sourceLocation, _ body: () async throws -> Value
) async throws -> HalcyonClient.ProblemDetails {
    guard case .problem(let problem) = try await errorOf(sourceLocation: sourceLocation, body) else {
        Issue.record("no problem", sourceLocation: sourceLocation)
        throw CancellationError()
    }
    return problem
}
