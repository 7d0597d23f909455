import HTTPServer
import HalcyonProbes

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
