import Foundation
import TestSupport
import Testing

@testable import HalcyonGateway

/// The routes of the dashboard's files.
@Suite struct DashboardRouteTests {
    private static let closed = AccessOptions.with { $0.keys = [APIKey(name: "a", secret: "secret", scopes: [.read])] }

    @Test func servesAllReferencedFilesWithoutAKey() async throws {
        try await withServer(DashboardRoutes.all, Self.closed) { port in
            let client = try RawClient(port)
            var (waiting, seen): ([String], Set<String>) = (["/"], [])
            while let path = waiting.popLast() {
                guard seen.insert(path).inserted else { continue }
                let answer = try await client.ask("GET", path)
                #expect(answer.status == 200, "\(path)")
                #expect(answer.headers["content-type"] == Self.type(of: path), "\(path)")
                waiting += answer.text.matches(of: /"(\/dashboard\/[a-z.]+)"/).map { String($0.1) }
                waiting += answer.text.matches(of: /from "\.\/([a-z]+\.js)"/).map { "/dashboard/\($0.1)" }
            }
            #expect(seen.count == 23)
        }
    }

    private static func type(of path: String) -> String {
        let kind = path.hasSuffix(".js") ? "javascript" : path.hasSuffix(".css") ? "css" : "html"
        return "text/\(kind); charset=utf-8"
    }

    @Test func filesAreRevalidatedByEntityTag() async throws {
        try await withServer(DashboardRoutes.all) { port in
            let client = try RawClient(port)
            let first = try await client.ask("GET", "/")
            let tag = try #require(first.headers["etag"])
            #expect(first.headers["cache-control"] == "no-cache")
            let second = try await client.ask("GET", "/", "If-None-Match: \(tag)\r\n")
            #expect(second.status == 304 && second.text.isEmpty)
            let script = try await client.ask("GET", "/dashboard/dashboard.js", "If-None-Match: \(tag)\r\n")
            #expect(script.status == 200)
        }
    }

    @Test func contentSecurityPolicyAllowsOnlyTheGateway() async throws {
        try await withServer(DashboardRoutes.all) { port in
            let client = try RawClient(port)
            for path in ["/", "/dashboard/dashboard.js", "/dashboard/dashboard.css"] {
                #expect(
                    try await client.ask("GET", path).headers["content-security-policy"]
                        == "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
                        + "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
            }
        }
    }

    @Test(arguments: ["/dashboard", "/dashboard/", "/dashboard/none.js", "/dashboard/..%2fapi.js", "/index.html"])
    func servesNoOtherPaths(_ path: String) async throws {
        try await withServer(DashboardRoutes.all) { port in
            let client = try RawClient(port)
            #expect(try await client.ask("GET", path).status == 404)
        }
    }
}
