import HTTPServer

/// Which pages of other origins may read answers (CORS, Fetch Standard 3.2). Never with the browser's own credentials.
struct CrossOrigin: Sendable {
    /// Such as `https://example.org`; `*` for all, none for off.
    let origins: [String]

    /// The answer to a browser that asks beforehand; nil for another request, and for an origin that may not.
    func preflight(_ request: HTTPServer.Request) -> HTTPServer.Response? {
        guard request.method == "OPTIONS", let origin = request.headers.first("Origin"),
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
        guard let origin = request.headers.first("Origin"), let allowed = allowed(origin) else { return }
        response.headers.add("Access-Control-Allow-Origin", allowed)
        response.headers.add("Access-Control-Expose-Headers", "ETag, Location, Retry-After")
    }

    /// Whether a page of another origin, which is not among ``origins``, has its reader's browser make this request. Browsers make many without
    /// asking beforehand, pictures and links among them, and to a gateway that asks nobody for a key they come as anybody's. `Origin` is
    /// not sent with all of them, and `Sec-Fetch-Site` (Fetch Metadata) not by all browsers: each is enough to tell.
    func isForeign(_ request: HTTPServer.Request) -> Bool {
        if origins.contains("*") { return false }
        if let origin = request.headers.first("Origin") {
            if allowed(origin) != nil { return false }
            if !["http://", "https://"].contains(where: { origin == $0 + request.host }) { return true }
        }
        return request.headers.first("Sec-Fetch-Site").map { ["cross-site", "same-site"].contains($0.lowercased()) }
            ?? false
    }

    private func allowed(_ origin: String) -> String? {
        if origins.contains("*") { return "*" }
        return origins.contains(origin) ? origin : nil
    }
}
