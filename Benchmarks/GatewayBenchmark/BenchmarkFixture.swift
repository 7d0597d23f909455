import Curl
import HalcyonCluster
import Measuring
import Subprocess
import TestSupport

/// The servers of a run, a worker, a gateway, and a client of it.
final class BenchmarkFixture: Sendable {
    let broker: RunBroker
    let gateway: ChildProcess
    let worker: ChildProcess
    let port: UInt16
    let photographs: PhotographServer
    /// Pixels and settings of all images, as a query has them and as a job.
    static let query = "width=400&height=300&format=jpeg&quality=80"
    static let fields = #""width":400,"height":300,"format":"jpeg","quality":80"#
    private let client = CurlClient()
    private let redis: RedisServer

    /// - Parameter processors: those of the worker, as taskset(1) lists them; nil shares the machine's with everything else.
    init(executable: String, photographs: [[UInt8]], workerOn processors: String?) async throws {
        self.photographs = try await PhotographServer(photographs)
        redis = try await RedisServer.start()
        broker = try await RunBroker.start(Topics().all)
        port = LoopbackPort.reserve()
        var options = ChildProcess.Options()
        options.environment = [
            "HALCYON_KAFKA_BROKERS": broker.bootstrapServers, "HALCYON_REDIS_URL": "redis://127.0.0.1:\(redis.port)",
            "HALCYON_SOURCES_ALLOW": "127.0.0.0/8", "HALCYON_LOG_LEVEL": "error",
            "HALCYON_GATEWAY_LISTEN": "127.0.0.1:\(port)", "HALCYON_GATEWAY_RATE": "1000000",
            "HALCYON_GATEWAY_BURST": "1000000",
        ]
        options.errors = .inherited
        let place = processors.map { ["/usr/bin/taskset", "--cpu-list", $0] } ?? []
        let command = place + [executable, "worker"]
        worker = try await ChildProcess.start(command[0], Array(command.dropFirst()), options: options)
        gateway = try await ChildProcess.start(executable, ["gateway"], options: options)
        let port = port
        try await until("the gateway is ready") { try await RawClient(port).get("/readyz").status == 200 }
    }

    /// What the gateway makes of a source, whose URL may stand in a query as it is.
    func render(_ source: String) async throws -> HTTPResponse {
        var request = HTTPRequest(
            .get, "http://127.0.0.1:\(port)/v1/render?source=\(source)&\(Self.query)&priority=normal")
        (request.timeout, request.stall) = (.seconds(120), nil)
        let response = try await client.execute(request)
        guard response.status == 200 else {
            throw ConditionTimeout(description: "\(response.status): \(String(decoding: response.body, as: UTF8.self))")
        }
        return response
    }

    func remove() async {
        await client.close()
        await gateway.stop()
        await worker.stop()
        await photographs.remove()
        await redis.stop()
        await broker.remove()
    }
}
