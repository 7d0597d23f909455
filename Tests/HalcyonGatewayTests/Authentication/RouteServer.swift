import Concurrency
import HTTPServer
import HalcyonTelemetry
import Telemetry
import TestSupport

@testable import HalcyonGateway

/// Runs `body` with a server of these routes on a free port, and stops it.
/// - Parameter responseHeadBytes: The memory for long headers of responses.
func withServer(
    _ routes: [Route], _ access: AccessOptions = AccessOptions(), responseHeadBytes: Int = 0,
    _ body: (UInt16) async throws -> Void
) async throws {
    let metrics = Metrics()
    let chain = MiddlewareChain(
        probes: Probes(metrics: metrics, health: { [] }, readiness: { [] }),
        router: Router(routes: routes, authenticator: Authenticator(access), log: .silent, metrics: metrics),
        headers: CommonHeaders(crossOrigin: CrossOrigin(origins: access.origins)), hosts: HostRule(access))
    var settings = HTTPServer.Settings.patient
    settings.limits.responseHeadBytes = responseHeadBytes
    let server = try HTTPServer.start(on: "127.0.0.1", settings, syncHandler: { chain.reply(to: $0) })
    let result: Result<Void, any Error>
    do { result = .success(try await body(server.port)) } catch { result = .failure(error) }
    await server.shutdown(gracePeriod: .zero)
    try result.get()
}

extension AccessOptions {
    /// Returns the defaults with these changes.
    static func with(_ change: (inout AccessOptions) -> Void) -> AccessOptions {
        var options = AccessOptions()
        change(&options)
        return options
    }
}

extension Route {
    /// Creates a route that responds with `yes`.
    static func yes(
        _ method: String, _ path: String, for scope: Scope?, acceptsSignature: Bool = false, startsJobs: Bool = false
    ) -> Route {
        Route(method, path, for: scope, acceptsSignature: acceptsSignature, startsJobs: startsJobs) { _ in
            HTTPServer.Response(status: 200, text: "yes")
        }
    }
}
