import HTTPServer
import TestSupport
import Testing

@testable import HalcyonGateway

/// The metrics of requests.
@Suite struct RequestMetricsTests {
    private struct RouteFailure: Error {}

    private static let routes: [Route] = [
        .yes("GET", "/yes/{name}", for: nil),
        Route("GET", "/trouble", for: nil) { _ in throw RouteFailure() },
        Route("GET", "/at-once", for: nil, atOnce: { _ in .immediate(HTTPServer.Response(status: 304)) }) { _ in
            HTTPServer.Response(status: 500)
        },
    ]

    @Test func countsRequestsByRouteNotByPath() async throws {
        try await withServer(Self.routes) { port in
            let client = try RawClient(port)
            for path in ["/yes/a", "/yes/b", "/trouble", "/at-once", "/nothing", "/nowhere"] {
                _ = try await client.get(path)
            }
            let text = String(decoding: try await client.get("/metrics").body, as: UTF8.self)
            for (labels, count) in [
                (#"route="GET /yes/{name}",status="2xx""#, 2), (#"route="GET /trouble",status="5xx""#, 1),
                (#"route="GET /at-once",status="3xx""#, 1), (#"route="GET /at-once",status="5xx""#, 0),
                (#"route="none",status="4xx""#, 2),
            ] {
                #expect(text.contains("\nhalcyon_gateway_requests_total{\(labels)} \(count)\n"), "\(labels): \(text)")
            }
            #expect(text.contains("\nhalcyon_gateway_request_duration_seconds_count{route=\"GET /yes/{name}\"} 2\n"))
            #expect(text.contains("\nhalcyon_gateway_requests_in_flight 0\n"))
            #expect(!text.contains("/nowhere"))
        }
    }
}
