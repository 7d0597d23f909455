import HTTPServer
import HalcyonTelemetry
import Telemetry

/// Dispatches requests to routes, authorizes them, and converts rejections and errors into ``Problem`` responses.
struct Router: Sendable {
    let routes: [Route]
    let authenticator: Authenticator
    let log: Log
    private let metrics: RequestMetrics
    private let tracer: Tracer?

    init(routes: [Route], authenticator: Authenticator, log: Log, metrics: Metrics, tracer: Tracer? = nil) {
        self.tracer = tracer
        self.routes = routes
        self.authenticator = authenticator
        self.log = log
        self.metrics = RequestMetrics(metrics, routes)
    }

    func reply(to request: HTTPServer.Request) -> HTTPServer.HandlerResult {
        let began = ContinuousClock.now
        var found: Int?
        let reply: HTTPServer.HandlerResult
        do throws(Problem) {
            reply = try find(request, &found)
        } catch {
            reply = .immediate(error.response)
        }
        return metrics.counted(reply, route: found, since: began)
    }

    /// - Parameter found: set to the index of the matching route, even if the request is rejected.
    private func find(_ request: HTTPServer.Request, _ found: inout Int?) throws(Problem) -> HTTPServer.HandlerResult {
        let method = request.method == "HEAD" ? "GET" : request.method
        var others: [String] = []
        var isWord = false
        for (index, route) in routes.enumerated() {
            guard let values = route.values(in: request.path) else { continue }
            // A literal path takes precedence over a pattern (OpenAPI 3.1, Paths Object). Its routes come first.
            if isWord, !values.isEmpty { continue }
            if route.method == method {
                found = index
                let now = ContinuousClock.now
                let (caller, account) = try authenticator.admit(request, to: route, at: now)
                let trace = route.startsJobs ? tracer.map { RequestTrace(request, $0) } : nil
                let call = RequestContext(request: request, values: values, caller: caller, began: now, trace: trace)
                if let reply = route.atOnce?(call) { return reply }
                let permit = try authenticator.acquirePermit(account, route.kind)
                return .deferred {
                    let response = await answer(call, by: route)
                    trace?.ended(response.status, by: route, request.method)
                    return permit.held(by: response, to: request.method)
                }
            }
            others.append(route.method)
            isWord = values.isEmpty
        }
        if others.isEmpty { throw Problem(.notFound, "no route matches this path") }
        var refusal = Problem(.methodNotAllowed, "the method \(request.method) is not supported by this path").response
        if others.contains("GET") { others.append("HEAD") }
        refusal.headers["Allow"] = others.joined(separator: ", ")
        return .immediate(refusal)
    }

    private func answer(_ call: RequestContext, by route: Route) async -> HTTPServer.Response {
        do {
            return try await route.answer(call)
        } catch let problem as Problem {
            return problem.response
        } catch HTTPServer.BodyError.tooLarge(let limit) {
            return Problem(.tooLarge, "the request body is larger than \(limit) bytes").response
        } catch is CancellationError, HTTPServer.BodyError.connectionLost {
            // The client does not see this response.
            return Problem(.unavailable, "the request was cancelled").response
        } catch {
            // The error is logged and not revealed to the client.
            log.error("request failed unexpectedly", ["path": call.request.target, "error": "\(error)"])
            return Problem(.unavailable, "the request cannot be processed at the moment; try again").response
        }
    }
}

/// The chain that every request passes: host check, probes, CORS and routes. It adds common headers to every response.
struct MiddlewareChain: Sendable {
    let probes: Probes
    let router: Router
    let headers: CommonHeaders
    let hosts: HostRule

    func reply(to request: HTTPServer.Request) -> HTTPServer.HandlerResult {
        if !hosts.allows(request.host) { return .immediate(finished(HostRule.refusal, request)) }
        if let answer = probes.answer(request) ?? headers.crossOrigin.preflight(request) {
            return .immediate(finished(answer, request))
        }
        switch router.reply(to: request) {
        case .immediate(let response): return .immediate(finished(response, request))
        case .cached(let response): return .cached(response)
        case .deferred(let work): return .deferred { finished(try await work(), request) }
        }
    }

    private func finished(_ response: HTTPServer.Response, _ request: HTTPServer.Request) -> HTTPServer.Response {
        var response = response
        headers.add(to: &response, for: request)
        return response
    }
}

/// Headers that are added to every response.
struct CommonHeaders: Sendable {
    let crossOrigin: CrossOrigin

    /// Adds the headers that the response does not set.
    /// - Parameter request: the request; nil if the server has answered it itself.
    func add(to response: inout HTTPServer.Response, for request: HTTPServer.Request?) {
        SecurityHeaders.add(to: &response)
        crossOrigin.add(to: &response, for: request)
    }

    /// True if the headers do not depend on the request, so that a response can be shared.
    func areCommon(to request: HTTPServer.Request) -> Bool {
        !crossOrigin.variesByOrigin || request.headers["Origin"] == nil
    }
}

/// Metrics of requests by route. Routes are used instead of paths, because the number of paths is unbounded.
struct RequestMetrics: Sendable {
    /// The metrics of one route.
    private struct Entry: Sendable {
        /// Counters by the first digit of the status, starting at 1.
        let classes: [Counter]
        let duration: Histogram

        init(_ metrics: Metrics, route: String) {
            classes = (1...5).map {
                metrics.counter(
                    "halcyon_gateway_requests_total",
                    help: "HTTP requests by route and status class.",
                    labels: ["route": route, "status": "\($0)xx"])
            }
            duration = metrics.histogram(
                "halcyon_gateway_request_duration_seconds",
                help:
                    "Time from request head to response head, including the time that the client asks to wait.",
                labels: ["route": route])
        }
    }

    private let routes: [Entry]
    /// The metrics of requests that match no route.
    private let others: Entry
    private let inFlight: Gauge

    init(_ metrics: Metrics, _ routes: [Route]) {
        self.routes = routes.map { Entry(metrics, route: $0.description) }
        others = Entry(metrics, route: "none")
        inFlight = metrics.gauge("halcyon_gateway_requests_in_flight", help: "HTTP requests that are being processed.")
    }

    /// Counts a request and its response.
    /// - Parameter route: the index of the route; nil if no route matched.
    func counted(_ reply: HTTPServer.HandlerResult, route: Int?, since began: ContinuousClock.Instant)
        -> HTTPServer.HandlerResult
    {
        let entry = route.map { routes[$0] } ?? others
        switch reply {
        case .immediate(let response): count(response.status, entry, began)
        case .cached(let response): count(response.status, entry, began)
        case .deferred(let work):
            inFlight.add(1)
            return .deferred {
                defer { inFlight.add(-1) }
                do {
                    let response = try await work()
                    count(response.status, entry, began)
                    return response
                } catch {
                    // The server responds with status 500 to errors thrown here.
                    count(500, entry, began)
                    throw error
                }
            }
        }
        return reply
    }

    private func count(_ status: Int, _ entry: Entry, _ began: ContinuousClock.Instant) {
        entry.classes[min(max(status / 100, 1), 5) - 1].add()
        entry.duration.observe(began.duration(to: .now))
    }
}

/// The span of a request that submits jobs. It is the parent of the jobs' spans and a child of the client's span.
struct RequestTrace: Sendable {
    /// The context of the span, which is passed to the jobs. The span is recorded only if it is sampled.
    let context: TraceContext
    private let parent: TraceContext?
    private let clock = TraceClock()
    private let tracer: Tracer

    init(_ request: HTTPServer.Request, _ tracer: Tracer) {
        parent = request.headers.first("traceparent").flatMap { TraceContext(traceparent: $0) }
        context = tracer.spanContext(under: parent)
        self.tracer = tracer
    }

    /// Records the span when the response head is ready. Attributes follow OpenTelemetry's conventions for HTTP
    /// servers: a 4xx status is not an error. The query is omitted, because it may contain a signature.
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
