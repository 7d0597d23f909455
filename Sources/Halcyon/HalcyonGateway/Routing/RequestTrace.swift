import HTTPServer
import Telemetry

/// The span of a request that puts jobs on their way. The jobs stand below it, and it below whatever its client was doing.
struct RequestTrace: Sendable {
    /// The request's place, which its jobs are handed. It is recorded only where that says so.
    let context: TraceContext
    private let parent: TraceContext?
    private let clock = TraceClock()
    private let tracer: Tracer

    init(_ request: HTTPServer.Request, _ tracer: Tracer) {
        parent = request.headers.first("traceparent").flatMap { TraceContext(traceparent: $0) }
        context = tracer.place(under: parent)
        self.tracer = tracer
    }

    /// The head of its answer is there. What it says follows OpenTelemetry's conventions for HTTP servers: an answer of 4xx is the client's failure and
    /// no error here. Nothing of the query, which may hold a signature.
    func ended(_ status: Int, by route: Route, _ method: String) {
        guard context.isSampled else { return }
        let error = status >= 500 ? "\(status)" : nil
        tracer.record([
            Span(
                route.description, .server, context: context, parent: parent, start: clock.start,
                end: clock.nanoseconds(of: .now),
                attributes: [
                    "http.request.method": method, "http.route": route.template, "http.response.status_code": status,
                    "error.type": error,
                ], status: error.map { .error($0) } ?? .unset)
        ])
    }
}
