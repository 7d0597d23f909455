import HTTPServer
import Redis
import TestSupport
import Testing

@testable import HalcyonGateway

/// Headers that every response has, and details that no response reveals.
@Suite struct MiddlewareChainTests {
    private static let routes: [Route] = [
        .yes("GET", "/yes", for: .read), .yes("POST", "/jobs", for: .submit),
        Route("GET", "/page", for: nil) { _ in
            HTTPServer.Response(
                status: 200,
                headers: [
                    "Content-Security-Policy": "default-src 'self'", "Cross-Origin-Resource-Policy": "cross-origin",
                ])
        },
        Route("GET", "/stream", for: .read) { _ in
            HTTPServer.Response(status: 200, body: .stream(length: nil) { try await $0.write([1]) })
        },
    ]

    @Test(arguments: [
        ("GET", "/yes", 200), ("HEAD", "/yes", 200), ("GET", "/stream", 200), ("POST", "/yes", 405),
        ("GET", "/nothing", 404), ("GET", "/", 404), ("GET", "/healthz", 200), ("GET", "/readyz", 200),
        ("GET", "/metrics", 200), ("POST", "/metrics", 405), ("OPTIONS", "/yes", 405), ("OPTIONS", "*", 404),
    ])
    func everyResponseHasSecurityHeadersOnce(_ method: String, _ target: String, _ status: Int) async throws {
        try await withServer(Self.routes) { port in
            let client = try RawClient(port)
            try await client.send("\(method) \(target) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            let text = String(decoding: try await client.rest(), as: UTF8.self)
            #expect(text.hasPrefix("HTTP/1.1 \(status) "))
            let head = text.split(separator: "\r\n\r\n", maxSplits: 1)[0]
            let lines = head.split(separator: "\r\n").map(String.init)
            for line in [
                "X-Content-Type-Options: nosniff", "Referrer-Policy: no-referrer",
                "Content-Security-Policy: default-src 'none'; sandbox; frame-ancestors 'none'",
                "Cross-Origin-Resource-Policy: same-origin",
            ] {
                #expect(lines.count { $0 == line } == 1, "\(line)")
            }
            #expect(!head.lowercased().contains("access-control"))
        }
    }

    @Test func responsesCanOverrideSecurityHeaders() async throws {
        try await withServer(Self.routes) { port in
            let headers = try await RawClient(port).get("/page").headers
            #expect(headers["content-security-policy"] == "default-src 'self'")
            #expect(headers["cross-origin-resource-policy"] == "cross-origin")
            #expect(headers["x-content-type-options"] == "nosniff")
        }
    }

    @Test func errorsAreProblemsAndListAllowedMethods() async throws {
        try await withServer(Self.routes) { port in
            let client = try RawClient(port)
            let missing = try await client.get("/nothing")
            #expect(missing.headers["content-type"] == "application/problem+json" && missing.status == 404)
            let wrong = try await client.ask("DELETE", "/yes")
            #expect(wrong.status == 405 && wrong.headers["allow"] == "GET, HEAD")
        }
    }

    @Test func allowsNoCORSWithoutOrigins() async throws {
        try await withServer(Self.routes) { port in
            let client = try RawClient(port)
            let origin = "Origin: https://a.example\r\n"
            let answer = try await client.get("/yes", origin)
            #expect(!answer.headers.keys.contains { $0.hasPrefix("access-control") })
            #expect(answer.headers["vary"] == nil)
            let asked = try await client.ask("OPTIONS", "/yes", origin + "Access-Control-Request-Method: GET\r\n")
            #expect(asked.status == 405 && !asked.headers.keys.contains { $0.hasPrefix("access-control") })
        }
    }

    @Test func allowsCORSForListedOriginsOnly() async throws {
        let access = AccessOptions.with {
            $0.origins = ["https://a.example", "https://b.example:8443"]
            $0.keys = [APIKey(name: "k", secret: "k", scopes: [.read])]
        }
        try await withServer(Self.routes, access) { port in
            let client = try RawClient(port)
            for origin in access.origins {
                let answer = try await client.get("/yes", "Origin: \(origin)\r\nX-API-Key: k\r\n")
                #expect(answer.status == 200 && answer.headers["access-control-allow-origin"] == origin)
                #expect(
                    answer.headers["access-control-expose-headers"]
                        == "Content-Range, ETag, Halcyon-Failure, Halcyon-Image-Size, Location, Retry-After")
                #expect(answer.headers["access-control-allow-credentials"] == nil)
                #expect(answer.headers["vary"] == "Origin")
                // Pages can read errors, too.
                #expect(
                    try await client.get("/yes", "Origin: \(origin)\r\n").headers["access-control-allow-origin"]
                        == origin)
                // Browsers send preflight requests without a key.
                let asked = try await client.ask(
                    "OPTIONS", "/jobs", "Origin: \(origin)\r\nAccess-Control-Request-Method: POST\r\n")
                #expect(asked.status == 204 && asked.headers["access-control-allow-origin"] == origin)
                #expect(asked.headers["access-control-allow-methods"] == "GET, HEAD, POST, PUT, DELETE")
                let names =
                    "Authorization, X-API-Key, Content-Type, Last-Event-ID, If-Match, If-None-Match, If-Range, Range, "
                    + "traceparent"
                #expect(asked.headers["access-control-allow-headers"] == names)
                #expect(asked.headers["vary"] == "Origin")
            }
            for origin in [
                "https://c.example", "http://a.example", "https://a.example:8443", "https://A.example", "null",
                "https://a.example.evil.example", "",
            ] {
                let line = "Origin: \(origin)\r\n"
                let answer = try await client.get("/yes", line + "X-API-Key: k\r\n")
                #expect(answer.status == 200 && answer.headers["access-control-allow-origin"] == nil)
                #expect(answer.headers["vary"] == "Origin")
                let asked = try await client.ask("OPTIONS", "/jobs", line + "Access-Control-Request-Method: POST\r\n")
                #expect(asked.status == 405 && asked.headers["access-control-allow-origin"] == nil)
            }
            // Caches need `Vary` on responses to requests without an origin, too.
            #expect(try await client.get("/yes", "X-API-Key: k\r\n").headers["vary"] == "Origin")
        }
    }

    @Test func wildcardOriginAllowsAllPages() async throws {
        try await withServer(Self.routes, .with { $0.origins = ["*"] }) { port in
            let client = try RawClient(port)
            // A cache may answer pages with the response to a request without an origin.
            for (path, status) in [("/yes", 200), ("/nothing", 404)] {
                for headers in ["", "Origin: https://any.example\r\n"] {
                    let answer = try await client.get(path, headers)
                    #expect(answer.status == status && answer.headers["access-control-allow-origin"] == "*")
                    #expect(answer.headers["access-control-expose-headers"]?.contains("ETag") == true)
                    #expect(answer.headers["vary"] == nil)
                }
            }
        }
    }

    @Test func errorResponsesHideInternalDetails() async throws {
        struct Secret: Error, CustomStringConvertible {
            let description = "hidden: redis://:password@10.0.0.1/ in /srv/app/Secret.swift:7"
        }
        let errors: [any Error] = [
            Secret(), RedisError(.unavailable, "hidden: connect to 10.0.0.1:6379"),
            HTTPServer.HTTPRequestError(418, "hidden"), CancellationError(),
        ]
        let routes = errors.enumerated().map { index, error in
            Route("GET", "/\(index)", for: .read) { _ in throw error }
        }
        try await withServer(routes) { port in
            let client = try RawClient(port)
            for index in errors.indices {
                let answer = try await client.get("/\(index)")
                #expect(answer.status == 503)
                #expect(answer.headers["content-type"] == "application/problem+json")
                #expect(!answer.text.contains("hidden") && !"\(answer.headers)".contains("hidden"))
                #expect(
                    answer.text.hasPrefix(
                        #"{"type":"/problems/unavailable","title":"Service unavailable","status":503,"#))
            }
        }
    }
}
