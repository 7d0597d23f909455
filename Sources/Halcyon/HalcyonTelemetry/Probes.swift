import HTTPServer
import Telemetry

/// What whoever runs a process asks it: `/healthz` whether it gets on, `/readyz` whether it serves, `/metrics` what it has done.
///
/// The first two answer 200 when all is well, else 503 with what is not, a line each. Kubernetes and Docker look at the status alone.
public struct Probes: Sendable {
    /// What is not well, in words for people; nothing when all is.
    public typealias Findings = @Sendable () -> [String]

    private let metrics: Metrics
    private let health: Findings
    private let readiness: Findings

    /// - Parameters:
    ///   - metrics: of the whole process.
    ///   - health: why the process is to be begun anew.
    ///   - readiness: why it does not serve yet, or no longer.
    public init(metrics: Metrics, health: @escaping Findings, readiness: @escaping Findings) {
        self.metrics = metrics
        self.health = health
        self.readiness = readiness
    }

    /// The answer to a request for one of the three; nil for any other.
    public func answer(_ request: HTTPServer.Request) -> HTTPServer.Response? {
        let make: () -> HTTPServer.Response
        switch request.path {
        case ["healthz"]: make = { Self.answer(health()) }
        case ["readyz"]: make = { Self.answer(readiness()) }
        case ["metrics"]: make = { Self.plain(200, metrics.prometheusText, "text/plain; version=0.0.4; charset=utf-8") }
        default: return nil
        }
        guard ["GET", "HEAD"].contains(request.method) else {
            var refusal = HTTPServer.Response(status: 405, text: "This is only read.\n")
            refusal.headers["Allow"] = "GET, HEAD"
            return refusal
        }
        return make()
    }

    private static func answer(_ findings: [String]) -> HTTPServer.Response {
        let text = findings.isEmpty ? "ok\n" : findings.map { $0 + "\n" }.joined()
        return plain(findings.isEmpty ? 200 : 503, Array(text.utf8), "text/plain; charset=utf-8")
    }

    private static func plain(_ status: Int, _ body: [UInt8], _ type: String) -> HTTPServer.Response {
        HTTPServer.Response(
            status: status,
            headers: ["Content-Type": type, "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"],
            body: .bytes(body))
    }
}

/// A server that answers ``Probes`` and nothing else.
public final class ProbeServer: Sendable {
    private let server: HTTPServer

    private init(_ server: HTTPServer) { self.server = server }

    /// Where it listens.
    public var port: UInt16 { server.port }

    /// Starts one.
    /// - Parameters:
    ///   - address: an IP address of this machine; `0.0.0.0` and `::` for all of them.
    ///   - port: 0 for a free one.
    /// - Throws: `HTTPServerError` when it cannot listen there.
    public static func start(
        _ probes: Probes, on address: String, port: UInt16, log: Log
    ) throws(HTTPServerError) -> ProbeServer {
        var settings = HTTPServer.Settings()
        // Who asks is a machine or two, now and then.
        settings.threads = 1
        settings.limits.connections = 256
        settings.limits.connectionsPerAddress = 64
        settings.limits.bodyBytes = 0
        settings.note = { log.take($0) }
        return ProbeServer(
            try .start(
                on: address, port: port, settings,
                replying: { request in
                    .now(
                        probes.answer(request)
                            ?? HTTPServer.Response(status: 404, text: "There are /healthz, /readyz and /metrics.\n"))
                }))
    }

    /// Answers no more.
    public func stop() async { await server.stop(within: .seconds(1)) }
}

extension Log {
    /// Takes what a server notes: for finding faults, unless somebody has to do something about it.
    public func take(_ note: HTTPServer.Note) {
        switch note {
        case .takesNone(let reason):
            warning(
                "no connection can be taken for now",
                ["reason": reason, "hint": "raise the limit of open files (ulimit -n), or lower gateway.connections"])
        case .handlerFailed, .unsendable, .refused, .dropped, .library: debug("http", ["note": "\(note)"])
        }
    }
}
