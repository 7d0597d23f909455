import JSON
import Subprocess
import TestSupport
import Testing

/// `halcyon health`, as the health check of the container image uses it.
@Suite(.limitedParallelism) struct HealthTests {
    @Test func checksTheWorkerAtItsConfiguredAddress() async throws {
        let (port, unused) = (LoopbackPort.reserve(), LoopbackPort.reserve())
        // The environment variables of the container, which both processes have.
        let listening = ["HALCYON_HTTP_LISTEN": "0.0.0.0:\(port)", "HALCYON_GATEWAY_LISTEN": "127.0.0.1:\(unused)"]
        let health = ["health", "--timeout", "60s"]
        let unreachable = try await Executable.run(health, environment: listening).expect(1)
        #expect(
            unreachable.errors.contains(
                "nothing listens at http://127.0.0.1:\(port)/healthz or http://127.0.0.1:\(unused)/"))
        let worker = try await WorkerProcess.start(
            brokers: "127.0.0.1:\(unused)", redisPort: unused, listening, errors: .discarded)
        try await until("the worker listens") { LoopbackPort.answers(port) }
        #expect(try await Executable.run(health, environment: listening).expect(0).output == "ok\n")
        // Kafka is unavailable, so the worker is healthy but not ready.
        let ready = try await Executable.run(health + ["--ready"], environment: listening).expect(1)
        #expect(ready.output.isEmpty && ready.errors.hasPrefix("halcyon: ") && ready.errors.utf8.count > 12)
        let run = try await Executable.run(
            health + ["--ready", "--json", "--url", "http://127.0.0.1:\(port)/"])
        run.expect(1)
        let answer = try #require(try run.json().first)
        #expect(try answer.member("healthy")?.bool() == false)
        #expect(try answer.member("status")?.integer() == 503)
        #expect(await worker.stop(grace: .seconds(60)) == .code(0))
    }

    @Test func checksTheGatewayIfNoWorkerListens() async throws {
        let gateway = RawOrigin { request in
            [.text("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nok\n"), .close]
        }
        let run = try await Executable.run(
            ["health", "--json", "--timeout", "60s"],
            environment: [
                "HALCYON_HTTP_LISTEN": "127.0.0.1:\(LoopbackPort.reserve())",
                "HALCYON_GATEWAY_LISTEN": "127.0.0.1:\(gateway.port)",
            ]
        ).expect(0)
        let expected =
            #"{"healthy":true,"url":"http://127.0.0.1:\#(gateway.port)/healthz","status":200,"says":"ok"}"# + "\n"
        #expect(run.output == expected)
        try await gateway.stop()
    }

    @Test(arguments: [
        ("a redirect", "HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n"),
        ("another server", "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"), ("nothing in time", ""),
    ])
    func failsOnAnyOtherResponse(_: String, answer: String) async throws {
        let server = RawOrigin { _ in [.text(answer), .awaitEnd] }
        let run = try await Executable.run(
            ["health", "--timeout", "500ms", "--url", "http://127.0.0.1:\(server.port)"])
        run.expect(1)
        try await server.stop()
    }
}
