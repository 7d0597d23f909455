import HTTPServer
import Telemetry

/// Finds who answers a request, lets in who may, and makes every refusal and every error a ``Problem``.
struct Router: Sendable {
    let routes: [Route]
    let gatekeeper: Gatekeeper
    let log: Log

    func reply(to request: HTTPServer.Request) -> HTTPServer.Reply {
        do throws(Problem) {
            return try find(request)
        } catch {
            return .now(error.response)
        }
    }

    private func find(_ request: HTTPServer.Request) throws(Problem) -> HTTPServer.Reply {
        let method = request.method == "HEAD" ? "GET" : request.method
        var others: [String] = []
        var isWord = false
        for route in routes {
            guard let values = route.values(in: request.path) else { continue }
            // A path that stands as it is counts before one with names (OpenAPI 3.1, Paths Object): its routes come first.
            if isWord, !values.isEmpty { continue }
            if route.method == method {
                let now = ContinuousClock.now
                let (caller, account) = try gatekeeper.admit(request, to: route, at: now)
                let call = Call(request: request, values: values, caller: caller, began: now)
                if let reply = route.atOnce?(call) { return reply }
                let place = try gatekeeper.enter(account, route.kind)
                return .later { place.held(by: await answer(call, by: route), to: request.method) }
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
