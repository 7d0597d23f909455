import HTTPServer

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
