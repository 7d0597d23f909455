import HTTPServer

/// Which pages of other origins may read answers (CORS, Fetch Standard 3.2). Never with the browser's own credentials.
struct CrossOrigin: Sendable {
    /// Such as `https://example.org`; `*` for all, none for off.
    let origins: [String]

    /// The answer to a browser that asks beforehand; nil for another request, and for an origin that may not.
    func preflight(_ request: HTTPServer.Request) -> HTTPServer.Response? {
        guard request.method == "OPTIONS", let origin = request.headers["Origin"],
            request.headers["Access-Control-Request-Method"] != nil, allowed(origin) != nil
        else { return nil }
        return HTTPServer.Response(
            status: 204,
            headers: [
                "Access-Control-Allow-Methods": "GET, HEAD, POST, DELETE",
                "Access-Control-Allow-Headers": "Authorization, X-API-Key, Content-Type, Last-Event-ID",
                "Access-Control-Max-Age": "600",
            ])
    }

    /// Says who may read an answer.
    func add(to response: inout HTTPServer.Response, for request: HTTPServer.Request) {
        if origins.isEmpty { return }
        if !origins.contains("*") { response.headers.add("Vary", "Origin") }
        guard let origin = request.headers["Origin"], let allowed = allowed(origin) else { return }
        response.headers.add("Access-Control-Allow-Origin", allowed)
        response.headers.add("Access-Control-Expose-Headers", "ETag, Location, Retry-After")
    }

    /// Whether a page of another origin, which may not, has its reader's browser change something. Browsers send some such requests without
    /// asking beforehand, and to a gateway that asks nobody for a key they would come as anybody's.
    func isForged(_ request: HTTPServer.Request) -> Bool {
        guard !["GET", "HEAD", "OPTIONS"].contains(request.method), let origin = request.headers["Origin"] else {
            return false
        }
        return allowed(origin) == nil && !["http://", "https://"].contains { origin == $0 + request.host }
    }

    private func allowed(_ origin: String) -> String? {
        if origins.contains("*") { return "*" }
        return origins.contains(origin) ? origin : nil
    }
}
