import Concurrency
import Curl
import Glibc
import Subprocess
import TestSupport
import Testing

/// The health, readiness and metrics of a worker at `http.listen`.
@Suite(.limitedParallelism) struct ProbeTests {
    private func get(_ port: UInt16, _ path: String) async throws -> HTTPResponse {
        let client = CurlClient()
        let result: Result<HTTPResponse, any Error>
        do {
            result = .success(try await client.execute(HTTPRequest(.get, "http://127.0.0.1:\(port)\(path)")))
        } catch {
            result = .failure(error)
        }
        await client.close()
        return try result.get()
    }

    @Test func gatewayServesMetricsOnlyAtTheirOwnAddress() async throws {
        let (port, probes, unused) = (LoopbackPort.reserve(), LoopbackPort.reserve(), LoopbackPort.reserve())
        let folder = TemporaryFolder("gateway")
        let gateway = try await Executable.start(
            ["gateway"],
            environment: [
                "HALCYON_GATEWAY_LISTEN": "127.0.0.1:\(port)", "HALCYON_HTTP_LISTEN": "127.0.0.1:\(probes)",
                "HALCYON_KAFKA_BROKERS": "127.0.0.1:\(unused)", "HALCYON_REDIS_URL": "redis://127.0.0.1:\(unused)",
            ], in: folder)
        try await until("the gateway listens") { LoopbackPort.answers(probes) }
        let metrics = String(decoding: try await get(probes, "/metrics").body, as: UTF8.self)
        #expect(metrics.contains("\nhalcyon_gateway_consuming 0\n"))
        #expect(try await get(port, "/metrics").status == 404)
        for served in [port, probes] {
            #expect(try await get(served, "/healthz").status == 200)
            #expect(try await get(served, "/readyz").status == 503)
        }
        gateway.send(SIGTERM)
        #expect(await gateway.exit() == .code(0))
        #expect(!LoopbackPort.answers(probes))
        await folder.remove()
    }

    @Test func workerWithoutKafkaIsHealthyButNotReady() async throws {
        let (port, unused) = (LoopbackPort.reserve(), LoopbackPort.reserve())
        let worker = try await WorkerProcess.start(
            brokers: "127.0.0.1:\(unused)", redisPort: unused, ["HALCYON_HTTP_LISTEN": "127.0.0.1:\(port)"],
            errors: .discarded)
        try await until("the worker listens") { LoopbackPort.answers(port) }
        let health = try await get(port, "/healthz")
        #expect(health.status == 200 && health.body == Array("ok\n".utf8))
        #expect(try await get(port, "/readyz").status == 503)
        let metrics = String(decoding: try await get(port, "/metrics").body, as: UTF8.self)
        #expect(metrics.contains("\nhalcyon_jobs_in_flight 0\n"))
        #expect(await worker.stop(grace: .seconds(60)) == .code(0))
        #expect(!LoopbackPort.answers(port))
    }

    @Test func workerFailsIfItsPortIsInUse() async throws {
        let (errors, unused) = (Lock(""), LoopbackPort.reserve())
        let redis = try await RedisServer.start()
        let worker = try await WorkerProcess.start(
            brokers: "127.0.0.1:\(unused)", redisPort: unused, ["HALCYON_HTTP_LISTEN": "127.0.0.1:\(redis.port)"],
            errors: .lines { line in errors.withLock { $0 += line + "\n" } })
        // systemd does not start a service again after exit code 2.
        #expect(await worker.exit() == .code(1))
        try await until("the error names the setting") { errors.withLock { $0.contains("http.listen: ") } }
        await redis.stop()
    }
}
