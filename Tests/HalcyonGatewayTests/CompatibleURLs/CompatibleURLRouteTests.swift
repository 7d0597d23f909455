import Formats
import HTTPServer
import HalcyonCluster
import HalcyonModel
import Hashing
import TestSupport
import Testing

@testable import HalcyonGateway

/// URLs of imgproxy, thumbor and imagor, in a whole cluster.
@Suite(.limitedParallelism) struct CompatibleURLRouteTests {
    private static func withCluster(
        _ change: (inout GatewayOptions) -> Void, _ body: (GatewayClient, RawOrigin) async throws -> Void
    ) async throws {
        let photograph = try SampleImages.bytes()
        let origin = RawOrigin { request in
            request.path == "/missing"
                ? [.text("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")]
                : RawOrigin.Step.response(photograph, ["Cache-Control: max-age=600"])
        }
        try await GatewayFixture.with { fixture in
            try await fixture.withWorker {
                try await fixture.withGateway(change) { client in try await body(client, origin) }
            }
        }
        try await origin.stop()
    }

    private static func unsigned(_ options: inout GatewayOptions) {
        options.urls = CompatibleURLTests.options
    }

    @Test func grammarsShareResultsWithRender() async throws {
        try await Self.withCluster(Self.unsigned) { (client: GatewayClient, origin: RawOrigin) async throws in
            let source = origin.url("/cat.jpg")
            let first = try await client.send(.get, "/_/w:60/q:70/plain/\(source)")
            #expect(first.status == 200 && first.headers["Content-Type"] == "image/jpeg")
            #expect(first.headers["Cache-Control"]?.hasPrefix("public, max-age=") == true)
            let tag = try #require(first.headers["ETag"])
            for url in [
                "/_/w:60/q:70/plain/\(source)?v=2", "/thumbor/unsafe/fit-in/60x0/filters:quality(70)/\(source)",
                "/imagor/unsafe/fit-in/60x/filters:quality(70)/\(PercentEncoding.encode(source))",
                "/v1/render?source=\(PercentEncoding.encode(source))&width=60&quality=70",
            ] {
                let same = try await client.send(.get, url)
                #expect(same.status == 200 && same.headers["ETag"] == tag, "\(url)")
                #expect(try await client.send(.get, url, headers: ["If-None-Match": tag]).status == 304)
            }
            #expect(origin.requests.count == 1)
            let saved = try await client.send(.get, "/_/w:60/q:70/att:1/plain/\(source)@webp")
            #expect(saved.headers["Content-Disposition"] == #"attachment; filename="cat.webp""#)
            #expect(saved.headers["Content-Type"] == "image/webp")
        }
    }

    @Test func errorsAreProblemsOrPlaceholders() async throws {
        try await Self.withCluster(Self.unsigned) { (client: GatewayClient, origin: RawOrigin) async throws in
            let missing = try await client.send(.get, "/_/w:60/plain/\(origin.url("/missing"))")
            #expect(missing.status == 404 && missing.json["code"] as? String == "not_found")
            let image = try await client.send(
                .get, "/_/w:60/plain/\(origin.url("/missing"))", headers: ["Accept": "image/*"])
            #expect(image.status == 404 && image.headers["Content-Type"] == "image/svg+xml")
            let unsupported = try await client.send(.get, "/_/mw:10/plain/\(origin.url("/a"))")
            #expect(unsupported.status == 400)
            #expect((unsupported.json["detail"] as? String)?.contains("mw:10") == true)
            let expired = try await client.send(.get, "/_/exp:1000/w:60/plain/\(origin.url("/a"))")
            #expect(expired.status == 410 && origin.requests.allSatisfy { $0.path == "/missing" })
            #expect(try await client.send(.post, "/_/w:60/plain/\(origin.url("/a"))").status == 405)
            // Halcyon's own paths are never URLs of another server.
            for path in ["/v1/nothing", "/dashboard/nothing", "/openapi.yaml/x"] {
                #expect(try await client.send(.get, path).status == 404, "\(path)")
            }
            #expect(try await client.send(.get, "/healthz").status == 200)
        }
    }

    /// The expiry of a URL limits how long caches may keep its image.
    @Test func responsesExpireWithTheirURL() async throws {
        try await Self.withCluster(Self.unsigned) { (client: GatewayClient, origin: RawOrigin) async throws in
            let end = Timestamp.now.milliseconds / 1000 + 100
            let response = try await client.send(.get, "/_/exp:\(end)/w:60/plain/\(origin.url("/a"))")
            let control = try #require(response.headers["Cache-Control"])
            let age = try #require(control.split(separator: "=").last.flatMap { Int($0) })
            #expect(response.status == 200 && (50...100).contains(age), "\(control)")
        }
    }

    /// The formats are chosen by `Accept` only if they are set.
    @Test func formatsFollowTheAcceptHeaderIfSet() async throws {
        for (formats, type) in [([ImageFormat](), "image/jpeg"), ([.webp], "image/webp")] {
            try await Self.withCluster({
                Self.unsigned(&$0)
                $0.urls.formats = formats
            }) { (client: GatewayClient, origin: RawOrigin) async throws in
                let response = try await client.send(
                    .get, "/thumbor/unsafe/60x0/\(origin.url("/a"))", headers: ["Accept": "image/webp,*/*"])
                #expect(response.headers["Content-Type"] == type)
            }
        }
    }

    /// Keys of the URLs protect everything else, too.
    @Test func otherRoutesRequireKeysIfURLsAreSigned() async throws {
        try await Self.withCluster({
            $0.urls.thumbor.prefix = "/"
            $0.urls.thumbor.keys = [Array("MY_SECURE_KEY".utf8)]
        }) { (client: GatewayClient, origin: RawOrigin) async throws in
            #expect(try await client.send(.get, "/v1/render?source=initials:J").status == 401)
            #expect(try await client.send(.get, "/unsafe/60x0/\(origin.url("/a"))").status == 403)
            let rest = "60x0/\(origin.url("/a"))"
            let code = ThumborSigner.sign(rest, key: "MY_SECURE_KEY")
            #expect(try await client.send(.get, "/\(code)/\(rest)").status == 200)
            #expect(try await client.send(.head, "/\(code)/\(rest)").status == 200)
            #expect(try await client.send(.get, "/\(code)/6\(rest)").status == 403)
        }
    }

    /// A new first segment of Halcyon's paths must be reserved.
    @Test func pathsOfHalcyonAreReserved() async throws {
        try await GatewayFixture.with { fixture in
            try await fixture.withGateway { (client: GatewayClient) async throws in
                for route in client.routes {
                    let path = route.split(separator: " ").last ?? ""
                    guard let word = path.split(separator: "/").first else { continue }
                    #expect(URLPrefix.reserved.contains(String(word)), "\(route)")
                }
            }
        }
    }
}

/// Signs URLs as clients of thumbor do.
enum ThumborSigner {
    static func sign(_ path: String, key: String) -> String {
        String(
            Base64.encode(HMACAlgorithm.sha1.code(of: Array(path.utf8), key: Array(key.utf8)))
                .map { $0 == "+" ? "-" : $0 == "/" ? "_" : $0 })
    }
}
