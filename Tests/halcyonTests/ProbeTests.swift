import Concurrency
import Curl
import Glibc
import Subprocess
import TestSupport
import Testing

/// `http.listen`, as whoever runs workers asks there.
@Suite struct ProbeTests {
    private func ask(_ port: UInt16, _ path: String) async throws -> HTTPResponse {
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

    @Test func aWorkerThatWaitsForKafkaIsWellAndNotReady() async throws {
        let (port, nobody) = (LoopbackPort.free(), LoopbackPort.free())
        let worker = try await WorkerProcess.start(
            brokers: "127.0.0.1:\(nobody)", redisPort: nobody, ["HALCYON_HTTP_LISTEN": "127.0.0.1:\(port)"],
            errors: .discarded)
        try await until("it listens") { LoopbackPort.answers(port) }
        let health = try await ask(port, "/healthz")
        #expect(health.status == 200 && health.body == Array("ok\n".utf8))
        #expect(try await ask(port, "/readyz").status == 503)
        let metrics = String(decoding: try await ask(port, "/metrics").body, as: UTF8.self)
        #expect(metrics.contains("\nhalcyon_jobs_in_flight 0\n"))
        #expect(await worker.stop(grace: .seconds(60)) == .code(0))
        #expect(!LoopbackPort.answers(port))
    }

    @Test func whereItCannotListenItSaysSo() async throws {
        let (said, nobody) = (Lock(""), LoopbackPort.free())
        let redis = try await RedisServer.start()
        let worker = try await WorkerProcess.start(
            brokers: "127.0.0.1:\(nobody)", redisPort: nobody, ["HALCYON_HTTP_LISTEN": "127.0.0.1:\(redis.port)"],
            errors: .lines { line in said.withLock { $0 += line + "\n" } })
        #expect(await worker.exit() == .code(2))
        try await until("it is said why") { said.withLock { $0.contains("http.listen: ") } }
        await redis.stop()
    }
}
