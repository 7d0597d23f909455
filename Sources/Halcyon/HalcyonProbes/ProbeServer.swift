import HTTPServer
import Telemetry

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
