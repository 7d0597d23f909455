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
