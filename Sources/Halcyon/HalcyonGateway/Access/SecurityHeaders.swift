import HTTPServer

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
