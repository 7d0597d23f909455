import HTTPServer

/// The CORS policy: the origins whose pages may read responses (Fetch Standard, 3.2). Credentials are never allowed.
struct CrossOrigin: Sendable {
    /// The allowed origins, such as `https://example.org`; `*` allows all. CORS is off if empty.
    let origins: [String]

    /// True if the headers depend on the origin of the request.
    var variesByOrigin: Bool { !origins.isEmpty && !origins.contains("*") }

    /// Returns the response to a preflight request; nil for other requests and for origins that are not allowed.
    func preflight(_ request: HTTPServer.Request) -> HTTPServer.Response? {
        guard request.method == "OPTIONS", let origin = request.headers.first("Origin"),
            request.headers["Access-Control-Request-Method"] != nil, allowed(origin) != nil
        else { return nil }
        return HTTPServer.Response(
            status: 204,
            headers: [
                "Access-Control-Allow-Methods": "GET, HEAD, POST, PUT, DELETE",
                "Access-Control-Allow-Headers": """
                Authorization, X-API-Key, Content-Type, Last-Event-ID, If-Match, If-None-Match, If-Range, Range, \
                traceparent
                """,
                "Access-Control-Max-Age": "600",
            ])
    }

    /// Adds the CORS headers to a response. If all origins are allowed, every response has the same ones, because a
    /// cache may answer a page with a response to a request without an origin (Fetch Standard, "CORS protocol and HTTP
    /// caches").
    /// - Parameter request: the request; nil if the server has answered it itself.
    func add(to response: inout HTTPServer.Response, for request: HTTPServer.Request?) {
        if variesByOrigin { response.headers.add("Vary", "Origin") }
        guard let allowed = allowed(request?.headers.first("Origin")) else { return }
        response.headers.add("Access-Control-Allow-Origin", allowed)
        response.headers.add(
            "Access-Control-Expose-Headers",
            "Content-Range, ETag, Halcyon-Failure, Halcyon-Image-Size, Location, Retry-After")
    }

    /// True if the request was caused by a page of an origin that is not in ``origins``. Browsers send many such
    /// requests without a preflight, for example for images and links, and a gateway without keys could not distinguish
    /// them. `Origin` is not part of all of them, and not all browsers send `Sec-Fetch-Site` (Fetch Metadata), so both
    /// are checked.
    func isForeign(_ request: HTTPServer.Request) -> Bool {
        if origins.contains("*") { return false }
        if let origin = request.headers.first("Origin") {
            if allowed(origin) != nil { return false }
            if !["http://", "https://"].contains(where: { origin == $0 + request.host }) { return true }
        }
        return request.headers.first("Sec-Fetch-Site").map { ["cross-site", "same-site"].contains($0.lowercased()) }
            ?? false
    }

    /// Returns the value of `Access-Control-Allow-Origin` for a request of an origin; nil if pages must not read the
    /// response.
    private func allowed(_ origin: String?) -> String? {
        if origins.contains("*") { return "*" }
        return origin.flatMap { origins.contains($0) ? $0 : nil }
    }
}

/// Security headers of all responses (OWASP Secure Headers).
enum SecurityHeaders {
    private static let fields = [
        // Disables content sniffing.
        ("X-Content-Type-Options", "nosniff"),
        // URLs may contain signatures.
        ("Referrer-Policy", "no-referrer"),
        // A response that is opened as a page must not run or load anything.
        ("Content-Security-Policy", "default-src 'none'; sandbox; frame-ancestors 'none'"),
        // Pages of other sites cannot embed the response.
        ("Cross-Origin-Resource-Policy", "same-origin"),
    ]

    /// Adds the headers that a response does not set.
    static func add(to response: inout HTTPServer.Response) {
        for (name, value) in fields where response.headers[name] == nil { response.headers.add(name, value) }
    }
}

/// The host names under which a gateway without keys on a loopback address may be addressed. Other names are rejected,
/// because a page could resolve its own name to 127.0.0.1 and send requests as if it were local (DNS rebinding). A pure
/// value.
struct HostRule: Hashable {
    /// True if all host names are allowed, because keys are required or the gateway is explicitly open.
    let takesAll: Bool

    init(_ options: AccessOptions) { takesAll = options.asksForKeys || options.isOpen }

    /// - Parameter host: the host of a request with an optional port.
    func allows(_ host: String) -> Bool {
        if takesAll || host.isEmpty { return true }
        guard let name = Self.name(of: host) else { return false }
        if name == "::1" || name == "localhost" || name.hasSuffix(".localhost") { return true }
        let parts = name.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil }
    }

    /// Returns the host in lower case without brackets and port; nil if it is invalid (RFC 9110, section 7.2).
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

    /// The response to a request for a host name that is not allowed.
    static var refusal: HTTPServer.Response {
        Problem(
            .misdirected,
            "without keys this gateway accepts only the host localhost; set gateway.keys or gateway.allowAnonymous"
        )
        .response
    }
}
