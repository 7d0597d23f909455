import HTTPServer
import HalcyonTelemetry
import Telemetry

/// Finds who answers a request, lets in who may, and makes every refusal and every error a ``Problem``.
struct Router: Sendable {
    let routes: [Route]
    let gatekeeper: Gatekeeper
    let log: Log
    private let metrics: RequestMetrics
    private let tracer: Tracer?

    init(routes: [Route], gatekeeper: Gatekeeper, log: Log, metrics: Metrics, tracer: Tracer? = nil) {
        self.tracer = tracer
        self.routes = routes
        self.gatekeeper = gatekeeper
        self.log = log
        self.metrics = RequestMetrics(metrics, routes)
    }

    func reply(to request: HTTPServer.Request) -> HTTPServer.Reply {
        let began = ContinuousClock.now
        var found: Int?
        let reply: HTTPServer.Reply
        do throws(Problem) {
            reply = try find(request, &found)
        } catch {
            reply = .now(error.response)
        }
        return metrics.counted(reply, route: found, since: began)
    }

    /// - Parameter found: set to the place of the request's route, also when it is refused there.
    private func find(_ request: HTTPServer.Request, _ found: inout Int?) throws(Problem) -> HTTPServer.Reply {
        let method = request.method == "HEAD" ? "GET" : request.method
        var others: [String] = []
        var isWord = false
        for (place, route) in routes.enumerated() {
            guard let values = route.values(in: request.path) else { continue }
            // A path that stands as it is counts before one with names (OpenAPI 3.1, Paths Object): its routes come first.
            if isWord, !values.isEmpty { continue }
            if route.method == method {
                found = place
                let now = ContinuousClock.now
                let (caller, account) = try gatekeeper.admit(request, to: route, at: now)
                let trace = route.startsJobs ? tracer.map { RequestTrace(request, $0) } : nil
                let call = Call(request: request, values: values, caller: caller, began: now, trace: trace)
                if let reply = route.atOnce?(call) { return reply }
                let place = try gatekeeper.enter(account, route.kind)
                return .later {
                    let response = await answer(call, by: route)
                    trace?.ended(response.status, by: route, request.method)
                    return place.held(by: response, to: request.method)
                }
            }
            others.append(route.method)
            isWord = values.isEmpty
        }
        if others.isEmpty { throw Problem(.notFound, "there is nothing at this path") }
        var refusal = Problem(.methodNotAllowed, "\(request.method) is not for this path").response
        if others.contains("GET") { others.append("HEAD") }
        refusal.headers["Allow"] = others.joined(separator: ", ")
        return .now(refusal)
    }

    private func answer(_ call: Call, by route: Route) async -> HTTPServer.Response {
        do {
            return try await route.answer(call)
        } catch let problem as Problem {
            return problem.response
        } catch HTTPServer.BodyError.tooLarge(let limit) {
            return Problem(.tooLarge, "the body is larger than \(limit) bytes").response
        } catch is CancellationError, HTTPServer.BodyError.connectionLost {
            // Nobody sees it.
            return Problem(.unavailable, "the request was given up").response
        } catch {
            // The reason stands in the log, and nothing of it in the answer.
            log.error("a request failed", ["path": call.request.target, "error": "\(error)"])
            return Problem(.unavailable, "this cannot be done now; try again").response
        }
    }
}

/// Where each request comes in and each answer goes out.
struct Entrance: Sendable {
    let probes: Probes
    let router: Router
    let headers: CommonHeaders
    let hosts: HostRule

    func reply(to request: HTTPServer.Request) -> HTTPServer.Reply {
        if !hosts.allows(request.host) { return .now(finished(HostRule.refusal, request)) }
        if let answer = probes.answer(request) ?? headers.crossOrigin.preflight(request) {
            return .now(finished(answer, request))
        }
        switch router.reply(to: request) {
        case .now(let response): return .now(finished(response, request))
        case .shared(let response): return .shared(response)
        case .later(let work): return .later { finished(try await work(), request) }
        }
    }

    private func finished(_ response: HTTPServer.Response, _ request: HTTPServer.Request) -> HTTPServer.Response {
        var response = response
        headers.add(to: &response, for: request)
        return response
    }
}

/// What every answer is given on its way out.
struct CommonHeaders: Sendable {
    let crossOrigin: CrossOrigin

    /// Adds what the answer does not say by itself.
    func add(to response: inout HTTPServer.Response, for request: HTTPServer.Request) {
        SecurityHeaders.add(to: &response)
        crossOrigin.add(to: &response, for: request)
    }

    /// Whether all such requests are given the same.
    func areCommon(to request: HTTPServer.Request) -> Bool {
        crossOrigin.origins.isEmpty || request.headers["Origin"] == nil
    }
}

/// What a gateway counts of requests, by the routes it has: paths as they came have no bound.
struct RequestMetrics: Sendable {
    /// Of one route.
    private struct Entry: Sendable {
        /// By the first digit of the status, from 1 on.
        let classes: [Counter]
        let duration: Histogram

        init(_ metrics: Metrics, route: String) {
            classes = (1...5).map {
                metrics.counter(
                    "halcyon_gateway_requests_total",
                    help: "Requests that were answered, by route and class of status.",
                    labels: ["route": route, "status": "\($0)xx"])
            }
            duration = metrics.histogram(
                "halcyon_gateway_request_duration_seconds",
                help:
                    "Time from a request's head to the head of its answer; what the caller asks to wait is part of it.",
                labels: ["route": route])
        }
    }

    private let routes: [Entry]
    /// Requests that have no route.
    private let others: Entry
    private let underWay: Gauge

    init(_ metrics: Metrics, _ routes: [Route]) {
        self.routes = routes.map { Entry(metrics, route: $0.description) }
        others = Entry(metrics, route: "none")
        underWay = metrics.gauge("halcyon_gateway_requests_under_way", help: "Requests that wait for their answer.")
    }

    /// Counts what becomes of a request.
    /// - Parameter route: its place in the list of routes; nil for none.
    func counted(_ reply: HTTPServer.Reply, route: Int?, since began: ContinuousClock.Instant) -> HTTPServer.Reply {
        let entry = route.map { routes[$0] } ?? others
        switch reply {
        case .now(let response): count(response.status, entry, began)
        case .shared(let response): count(response.status, entry, began)
        case .later(let work):
            underWay.add(1)
            return .later {
                defer { underWay.add(-1) }
                do {
                    let response = try await work()
                    count(response.status, entry, began)
                    return response
                } catch {
                    // The server answers what is thrown here with an error of its own.
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
