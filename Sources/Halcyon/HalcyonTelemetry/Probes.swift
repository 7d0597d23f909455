import HTTPServer
import Telemetry

/// The operational endpoints of a process: `/healthz` for liveness, `/readyz` for readiness, and `/metrics` for
/// Prometheus.
///
/// The first two respond with 200 if there are no findings, otherwise with 503 and one finding per line. Kubernetes and
/// Docker evaluate only the status.
public struct Probes: Sendable {
    /// A function that returns the current problems as human-readable texts; empty if there are none.
    public typealias Findings = @Sendable () -> [String]

    private let metrics: Metrics
    private let health: Findings
    private let readiness: Findings
    private var servesMetrics = true

    /// Creates the endpoints.
    /// - Parameters:
    ///   - metrics: The metrics of the process.
    ///   - health: The reasons for which the process must be restarted.
    ///   - readiness: The reasons for which the process cannot serve.
    public init(metrics: Metrics, health: @escaping Findings, readiness: @escaping Findings) {
        self.metrics = metrics
        self.health = health
        self.readiness = readiness
    }

    /// The endpoints without `/metrics`, for a server that is open to clients.
    public var withoutMetrics: Probes {
        var probes = self
        probes.servesMetrics = false
        return probes
    }

    /// Returns the response to a request for one of the endpoints; nil for other paths.
    public func answer(_ request: HTTPServer.Request) -> HTTPServer.Response? {
        let make: () -> HTTPServer.Response
        switch request.path {
        case ["healthz"]: make = { Self.answer(health()) }
        case ["readyz"]: make = { Self.answer(readiness()) }
        case ["metrics"] where servesMetrics:
            make = { Self.plain(200, metrics.prometheusText, "text/plain; version=0.0.4; charset=utf-8") }
        default: return nil
        }
        guard ["GET", "HEAD"].contains(request.method) else {
            var refusal = HTTPServer.Response(status: 405, text: "Method not allowed; use GET or HEAD.\n")
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

/// A server that serves only ``Probes``.
public final class ProbeServer: Sendable {
    private let server: HTTPServer

    private init(_ server: HTTPServer) { self.server = server }

    /// The port on which the server listens.
    public var port: UInt16 { server.port }

    /// Starts a server.
    /// - Parameters:
    ///   - probes: The endpoints to serve.
    ///   - address: An IP address of this machine; `0.0.0.0` or `::` for all addresses.
    ///   - port: The port; 0 for a free port.
    ///   - log: The log for server events.
    /// - Throws: `HTTPServerError` if the server cannot listen on the address and port.
    public static func start(
        _ probes: Probes, on address: String, port: UInt16, log: Log
    ) throws(HTTPServerError) -> ProbeServer {
        var settings = HTTPServer.Settings()
        // Few clients poll the endpoints.
        settings.threads = 1
        settings.limits.connections = 256
        settings.limits.connectionsPerAddress = 64
        settings.limits.bodyBytes = 0
        settings.note = { [events = ServerEventLog(log)] in events.log($0) }
        return ProbeServer(
            try .start(
                on: address, port: port, settings,
                syncHandler: { request in
                    .immediate(
                        probes.answer(request)
                            ?? HTTPServer.Response(status: 404, text: "Not found; use /healthz, /readyz or /metrics.\n")
                    )
                }))
    }

    /// Stops the server. Probes are served until then, so it is the last one that a process stops.
    public func stop() async { await server.shutdown(gracePeriod: .seconds(1)) }
}

/// Logs the events of a server: at warning level, once a minute, if the operator must act, otherwise at debug level.
public struct ServerEventLog: Sendable {
    private let target: Log
    private let limitHint: String?
    private let exhaustion = LogThrottle()
    private let limits = LogThrottle()

    /// Creates a log of server events.
    /// - Parameters:
    ///   - log: The log that the records are written to.
    ///   - limitHint: The advice for a limit on connections that was reached; nil for none.
    public init(_ log: Log, limitHint: String? = nil) {
        target = log
        self.limitHint = limitHint
    }

    /// Logs an event.
    public func log(_ event: HTTPServer.ServerEvent) {
        switch event {
        case .takesNone(let reason):
            guard let unlogged = exhaustion.next() else { return }
            let hint = "raise the open files limit (ulimit -n), or lower gateway.connections"
            target.warning("server cannot accept connections", ["reason": reason, "hint": hint, "unlogged": unlogged])
        case .connectionLimit(let reason, let address):
            guard let unlogged = limits.next() else { return }
            target.warning(
                "server closes new connections",
                ["reason": reason, "address": address, "hint": limitHint, "unlogged": unlogged])
        case .handlerFailed, .unsendable, .refused, .dropped, .library:
            target.debug("HTTP server event", ["note": "\(event)"])
        }
    }
}
