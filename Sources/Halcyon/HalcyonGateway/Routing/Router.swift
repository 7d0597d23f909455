import HTTPServer
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
