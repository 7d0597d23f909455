import Concurrency
import Curl
import HTTPServer
import HalcyonTelemetry
import Telemetry
import TestSupport
import Testing

/// Probes and metrics, over a real connection.
@Suite struct ProbeServerTests {
    private let metrics = Metrics()
    private let findings = Lock((health: [String](), readiness: [String]()))

    /// Runs `body` with a new server and a function that sends requests to it.
    private func withServer(
        _ body: (_ send: (HTTPRequest.Method, String) async throws -> HTTPResponse) async throws -> Void
    ) async throws {
        let probes = Probes(
            metrics: metrics, health: { [findings] in findings.withLock { $0.health } },
            readiness: { [findings] in findings.withLock { $0.readiness } })
        let server = try ProbeServer.start(probes, on: "127.0.0.1", port: 0, log: .silent)
        let client = CurlClient()
        let result: Result<Void, any Error>
        do {
            result = .success(
                try await body { method, path in
                    try await client.execute(HTTPRequest(method, "http://127.0.0.1:\(server.port)\(path)"))
                })
        } catch {
            result = .failure(error)
        }
        await client.close()
        await server.stop()
        try result.get()
    }

    @Test func reportsHealthAndReadiness() async throws {
        try await withServer { send in
            for path in ["/healthz", "/readyz"] {
                let answer = try await send(.get, path)
                #expect(answer.status == 200 && answer.text == "ok\n")
            }
            findings.withLock { $0 = (["it hangs", "it waits"], ["it has no part"]) }
            let health = try await send(.get, "/healthz")
            #expect(health.status == 503 && health.text == "it hangs\nit waits\n")
            let readiness = try await send(.get, "/readyz")
            #expect(readiness.status == 503 && readiness.text == "it has no part\n")
            // A cached response would be out of date.
            #expect(health.headers["Cache-Control"] == "no-store")
        }
    }

    @Test func servesMetricsInPrometheusFormat() async throws {
        metrics.counter("things_total", help: "Things.").add(3)
        try await withServer { send in
            let answer = try await send(.get, "/metrics")
            #expect(answer.status == 200 && answer.text.contains("\nthings_total 3\n"))
            #expect(answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8")
        }
    }

    @Test func rejectsOtherMethodsAndPaths() async throws {
        try await withServer { send in
            let (read, written) = (try await send(.head, "/healthz"), try await send(.post, "/healthz"))
            #expect(read.status == 200 && written.status == 405)
            for path in ["/", "/metrics/", "/healthz/x", "/%6detrics%2f"] {
                let answer = try await send(.get, path)
                #expect(answer.status == 404, "\(path)")
            }
        }
    }

    @Test func startFailsNamingAPortInUse() async throws {
        let probes = Probes(metrics: metrics, health: { [] }, readiness: { [] })
        let server = try ProbeServer.start(probes, on: "127.0.0.1", port: 0, log: .silent)
        let error = #expect(throws: (any Error).self) {
            try ProbeServer.start(probes, on: "127.0.0.1", port: server.port, log: .silent)
        }
        #expect(error.map { "\($0)".contains("\(server.port)") } == true, "\(error as Any)")
        await server.stop()
    }
}

@Suite struct ServerEventLogTests {
    private final class RecordList: LogSink {
        private let list = Lock<[LogRecord]>([])
        var records: [LogRecord] { list.withLock { $0 } }
        func log(_ record: LogRecord) { list.withLock { $0.append(record) } }
    }

    @Test func warnsOfLimitsOncePerKind() throws {
        let sink = RecordList()
        let events = ServerEventLog(Log(level: .info, sink: sink), limitHint: "raise the limit")
        for _ in 0..<3 { events.log(.connectionLimit(reason: "limit of 7 reached", remoteAddress: "192.0.2.1")) }
        for _ in 0..<3 { events.log(.takesNone(reason: "no descriptors")) }
        events.log(.dropped(reason: "it does not read", remoteAddress: "192.0.2.1"))
        let messages = sink.records.map(\.message)
        #expect(messages == ["server closes new connections", "server cannot accept connections"])
        #expect(sink.records.allSatisfy { $0.level == .warning })
        let fields = try #require(sink.records.first).fields
        #expect(fields["reason"] == .string("limit of 7 reached"))
        #expect(fields["address"] == .string("192.0.2.1"))
        #expect(fields["hint"] == .string("raise the limit"))
    }
}

extension HTTPResponse {
    fileprivate var text: String { String(decoding: body, as: UTF8.self) }
}
