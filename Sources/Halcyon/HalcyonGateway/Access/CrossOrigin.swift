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

/// What every answer tells browsers, so that nothing of it is taken for more than it is (OWASP Secure Headers).
enum SecurityHeaders {
    private static let fields = [
        // The type is the one that is told.
        ("X-Content-Type-Options", "nosniff"),
        // URLs may hold signatures.
        ("Referrer-Policy", "no-referrer"),
        // Nothing of an answer runs or loads anything, if somebody opens it by itself.
        ("Content-Security-Policy", "default-src 'none'; sandbox; frame-ancestors 'none'"),
        // Other sites' pages cannot include it.
        ("Cross-Origin-Resource-Policy", "same-origin"),
    ]

    /// Adds what the answer does not say by itself.
    static func add(to response: inout HTTPServer.Response) {
        for (name, value) in fields where response.headers[name] == nil { response.headers.add(name, value) }
    }
}

/// As what a gateway that keeps to its machine, and asks for no key, may be addressed: by no name that somebody else owns. Else a page could have its
/// name resolved to 127.0.0.1 and do everything as if it were this machine's own (DNS rebinding). A pure value.
struct HostRule: Hashable {
    /// Whether every name will do: keys are asked for, or the gateway is said to be open.
    let takesAll: Bool

    init(_ options: AccessOptions) { takesAll = options.asksForKeys || options.isOpen }

    /// - Parameter host: a host, and perhaps a port, as a request names it.
    func allows(_ host: String) -> Bool {
        if takesAll || host.isEmpty { return true }
        guard let name = Self.name(of: host) else { return false }
        if name == "::1" || name == "localhost" || name.hasSuffix(".localhost") { return true }
        let parts = name.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil }
    }

    /// The host in lower case, without brackets and without its port; nil for what is no host with a port (RFC 9110, section 7.2).
    private static func name(of host: String) -> String? {
        let isBracketed = host.hasPrefix("[")
        let end = host.firstIndex(of: isBracketed ? "]" : ":") ?? host.endIndex
        let rest = host[end...].drop { isBracketed && $0 == "]" }
        let isPort = rest.utf8.dropFirst().allSatisfy { (0x30...0x39).contains($0) }
        guard rest.isEmpty || rest.utf8.first == UInt8(ascii: ":") && isPort, !isBracketed || end < host.endIndex else {
            return nil
        }
        return host[..<end].drop { $0 == "[" }.lowercased()
    }

    /// What others are answered.
    static var refusal: HTTPServer.Response {
        Problem(.misdirected, "without keys this gateway answers only as localhost: set gateway.keys, or gateway.open")
            .response
    }
}
