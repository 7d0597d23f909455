import HTTPServer
import TestSupport
import Testing

@testable import HalcyonGateway

/// Authentication by API keys and their scopes.
@Suite struct KeyTests {
    private static let routes: [Route] = [
        .yes("GET", "/read", for: .read), .yes("POST", "/submit", for: .submit), .yes("DELETE", "/admin", for: .admin),
        .yes("GET", "/free", for: nil), .yes("POST", "/free", for: nil),
    ]
    private static let all = [("GET", "/read"), ("POST", "/submit"), ("DELETE", "/admin")]
    private static let keys = AccessOptions.with {
        $0.keys = [
            APIKey(name: "reader", secret: "r-secret", scopes: [.read]),
            APIKey(name: "writer", secret: "w-secret", scopes: [.submit]),
            APIKey(name: "both", secret: "b-secret", scopes: [.submit, .read]),
            APIKey(name: "root", secret: "a-secret", scopes: [.admin]),
            APIKey(name: "nothing", secret: "n-secret", scopes: []),
        ]
    }

    @Test(arguments: [
        ("r-secret", [200, 403, 403]), ("w-secret", [403, 200, 403]), ("b-secret", [200, 200, 403]),
        ("a-secret", [200, 200, 200]), ("n-secret", [403, 403, 403]),
    ])
    func keyGrantsItsScopes(_ secret: String, _ statuses: [Int]) async throws {
        try await withServer(Self.routes, Self.keys) { port in
            let client = try RawClient(port)
            for header in [
                "X-API-Key: \(secret)", "Authorization: Bearer \(secret)", "authorization: bEARER  \(secret)",
            ] {
                for ((method, path), status) in zip(Self.all, statuses) {
                    #expect(try await client.ask(method, path, "\(header)\r\n").status == status)
                }
            }
        }
    }

    @Test(arguments: [
        "", "X-API-Key: r-secre\r\n", "X-API-Key: r-secret2\r\n", "X-API-Key: R-SECRET\r\n", "X-API-Key:\r\n",
        "Authorization: r-secret\r\n", "Authorization: Basic r-secret\r\n", "Authorization: Bearer\r\n",
        "Authorization: Bearer reader\r\n", "X-API-Key: r-secret\r\nX-API-Key: r-secret\r\n",
        "Authorization: Bearer r-secret\r\nAuthorization: Bearer r-secret\r\n",
        "Authorization: Bearer r-secret\r\nX-API-Key: wrong\r\n", "Cookie: r-secret\r\n",
    ])
    func missingAndInvalidKeysGetTheSameResponse(_ headers: String) async throws {
        try await withServer(Self.routes, Self.keys) { port in
            let client = try RawClient(port)
            for (method, path) in Self.all {
                let answer = try await client.ask(method, path, headers)
                #expect(answer.status == 401)
                #expect(answer.headers["www-authenticate"] == "Bearer")
                #expect(answer.headers["content-type"] == "application/problem+json")
                #expect(
                    answer.text
                        == #"{"type":"/problems/unauthorized","title":"API key required","status":401,"detail":"send a valid key in Authorization: Bearer or X-API-Key"}"#
                )
            }
            // Public routes need no key.
            #expect(try await client.ask("GET", "/free", headers).status == 200)
        }
    }

    @Test func reportsTheMissingScope() async throws {
        try await withServer(Self.routes, Self.keys) { port in
            let answer = try await RawClient(port).ask("DELETE", "/admin", "X-API-Key: b-secret\r\n")
            #expect(answer.status == 403 && answer.text.contains("a key with the scope admin"))
        }
    }

    @Test func allowsEverythingWithoutKeys() async throws {
        try await withServer(Self.routes) { port in
            let client = try RawClient(port)
            for (method, path) in Self.all {
                #expect(try await client.ask(method, path).status == 200)
                #expect(try await client.ask(method, path, "X-API-Key: any\r\n").status == 200)
            }
        }
    }

    @Test func rejectsCrossOriginWritesWithoutKeys() async throws {
        let access = AccessOptions.with { $0.origins = ["https://friend.example"] }
        try await withServer(Self.routes, access) { port in
            let client = try RawClient(port)
            for origin in ["https://evil.example", "null", "http://localhost.evil.example", "http://"] {
                #expect(try await client.ask("POST", "/submit", "Origin: \(origin)\r\n").status == 403)
                #expect(try await client.ask("DELETE", "/admin", "Origin: \(origin)\r\n").status == 403)
                #expect(try await client.ask("GET", "/read", "Origin: \(origin)\r\n").status == 200)
            }
            // Host is `localhost`: its own pages and those of listed origins are allowed.
            for origin in ["http://localhost", "https://localhost", "https://friend.example"] {
                #expect(try await client.ask("POST", "/submit", "Origin: \(origin)\r\n").status == 200)
            }
        }
    }

    /// An image on a page of another site is requested without `Origin`, so the render would be attributed to the
    /// visitor.
    @Test func rejectsCrossSiteRendersWithoutKeys() async throws {
        let routes: [Route] = [
            .yes("GET", "/render", for: .submit, acceptsSignature: true, startsJobs: true),
            .yes("POST", "/jobs", for: .submit, startsJobs: true), .yes("GET", "/read", for: .read),
        ]
        try await withServer(routes, .with { $0.origins = ["https://friend.example"] }) { port in
            let client = try RawClient(port)
            for site in ["cross-site", "same-site", "Cross-Site"] {
                let line = "Sec-Fetch-Site: \(site)\r\n"
                for (method, path) in [("GET", "/render"), ("HEAD", "/render"), ("POST", "/jobs")] {
                    #expect(try await client.ask(method, path, line).status == 403)
                    #expect(try await client.ask(method, path, line + "Origin: http://localhost\r\n").status == 403)
                }
                #expect(try await client.ask("GET", "/read", line).status == 200)
                // Browsers send this for an image with `crossorigin`.
                let friend = line + "Origin: https://friend.example\r\n"
                #expect(try await client.ask("GET", "/render", friend).status == 200)
            }
            for origin in ["https://evil.example", "null"] {
                #expect(try await client.ask("GET", "/render", "Origin: \(origin)\r\n").status == 403)
            }
            for lines in ["", "Sec-Fetch-Site: none\r\n", "Sec-Fetch-Site: same-origin\r\n"] {
                #expect(try await client.ask("GET", "/render", lines).status == 200)
            }
        }
        try await withServer(routes, .with { $0.origins = ["*"] }) { port in
            let client = try RawClient(port)
            #expect(try await client.ask("GET", "/render", "Sec-Fetch-Site: cross-site\r\n").status == 200)
        }
    }

    /// Without keys the URLs of other image servers are unsigned.
    @Test func unsignedURLsAreForOtherSitesOnOpenGatewaysOnly() async throws {
        let routes = [
            Route(
                "GET", "/{url...}", for: nil, startsJobs: true, verify: { _ in .signature(expires: nil) },
                answer: { _ in HTTPServer.Response(status: 200, text: "yes") })
        ]
        let friendly = AccessOptions.with { $0.origins = ["https://friend.example"] }
        let cases: [(AccessOptions, Int)] = [
            (friendly, 403), (.with { $0.isOpen = true }, 200), (.with { $0.hasCompatibleKeys = true }, 200),
        ]
        for (access, status) in cases {
            try await withServer(routes, access) { port in
                let client = try RawClient(port)
                for line in ["Sec-Fetch-Site: cross-site\r\n", "Origin: https://evil.example\r\n"] {
                    #expect(try await client.ask("GET", "/unsafe/a", line).status == status)
                }
                for line in ["", "Sec-Fetch-Site: none\r\n", "Sec-Fetch-Site: same-origin\r\n"] {
                    #expect(try await client.ask("GET", "/unsafe/a", line).status == 200)
                }
            }
        }
        try await withServer(routes, friendly) { port async throws in
            let lines = "Sec-Fetch-Site: cross-site\r\nOrigin: https://friend.example\r\n"
            #expect(try await RawClient(port).ask("GET", "/unsafe/a", lines).status == 200)
        }
    }

    @Test func signingKeysAloneRequireAuthentication() async throws {
        let access = AccessOptions.with { $0.urlKeys = ["1": Array(repeating: 7, count: 32)] }
        let routes: [Route] = [
            .yes("GET", "/render", for: .submit, acceptsSignature: true, startsJobs: true),
            .yes("POST", "/jobs", for: .submit, startsJobs: true), .yes("GET", "/free", for: nil),
        ]
        try await withServer(routes, access) { port in
            let client = try RawClient(port)
            #expect(try await client.ask("GET", "/render?width=1").status == 401)
            #expect(try await client.ask("POST", "/jobs").status == 401)
            #expect(try await client.ask("GET", "/free").status == 200)
            let signer = URLSigner(keys: access.urlKeys, requiresExpiry: true)
            let signed = try #require(signer.sign("/render?width=1", keyId: "1", expires: 4_000_000_000))
            #expect(try await client.ask("GET", signed, "Sec-Fetch-Site: cross-site\r\n").status == 200)
        }
        #expect(access.allowsListening(on: "0.0.0.0"))
    }

    @Test func doesNotStoreSecretsInPlainText() {
        var text = ""
        dump(Self.keys, to: &text)
        #expect(text.contains("reader") && !text.contains("r-secret"))
    }

    @Test func listensOnLoopbackOnlyWithoutKeys() {
        let open = AccessOptions.with { $0.isOpen = true }
        for (host, isLoopback) in [
            ("127.0.0.1", true), ("127.3.2.1", true), ("::1", true), ("0.0.0.0", false), ("::", false),
            ("10.0.0.1", false), ("1.127.0.0", false), ("::2", false), ("localhost", false),
        ] {
            #expect(AccessOptions().allowsListening(on: host) == isLoopback)
            #expect(open.allowsListening(on: host))
            #expect(Self.keys.allowsListening(on: host))
        }
    }
}
