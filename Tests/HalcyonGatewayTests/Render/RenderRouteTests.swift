import Formats
import Foundation
import HalcyonModel
import Redis
import TestSupport
import Testing

@testable import HalcyonGateway

/// `GET /v1/render`, in a whole cluster.
@Suite(.limitedParallelism) struct RenderRouteTests {
    private static func path(_ origin: RawOrigin, _ more: String = "&width=60&height=40", file: String = "/a") -> String
    {
        "/v1/render?source=\(PercentEncoding.encode(origin.url(file)))\(more)"
    }

    private static func origin(_ cacheControl: String = "max-age=600") throws -> RawOrigin {
        let photograph = try SampleImages.bytes()
        return RawOrigin { request in
            switch request.path {
            case "/missing": [.text("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")]
            case "/broken": RawOrigin.Step.response(Array("no image".utf8), ["Cache-Control: \(cacheControl)"])
            case "/hangs": [.awaitEnd]
            default: RawOrigin.Step.response(photograph, ["Cache-Control: \(cacheControl)"])
            }
        }
    }

    @Test func servesRepeatedRequestsFromOneFetch() async throws {
        let origin = try Self.origin()
        try await GatewayFixture.with { fixture in
            try await fixture.withWorker {
                try await fixture.withGateway { (client: GatewayClient) async throws in
                    let first = try await client.send(.get, Self.path(origin))
                    #expect(first.status == 200 && first.headers["Content-Type"] == "image/jpeg")
                    #expect(first.headers["Cache-Control"]?.contains("max-age=") == true)
                    #expect(first.headers["Vary"] == "Accept")
                    let tag = try #require(first.headers["ETag"])
                    let second = try await client.send(.get, Self.path(origin))
                    #expect(second.body == first.body && second.headers["ETag"] == tag)
                    #expect(
                        try await client.send(.get, Self.path(origin), headers: ["If-None-Match": tag]).status == 304)
                    let head = try await client.send(.head, Self.path(origin))
                    #expect(head.status == 200 && head.body.isEmpty)
                    // Browsers get a format that they accept.
                    let webp = try await client.send(
                        .get, Self.path(origin), headers: ["Accept": "image/webp,*/*;q=0.8"])
                    #expect(webp.headers["Content-Type"] == "image/webp")
                    let png = try await client.send(
                        .get, Self.path(origin, "&width=60&format=png"), headers: ["Accept": "image/webp,*/*;q=0.8"])
                    #expect(png.headers["Content-Type"] == "image/png")
                    #expect(origin.requests.count == 1)
                }
            }
        }
        try await origin.stop()
    }

    @Test func servesFactsAboutSources() async throws {
        let origin = try Self.origin()
        try await GatewayFixture.with { fixture in
            try await fixture.withWorker {
                try await fixture.withGateway { (client: GatewayClient) async throws in
                    func path(_ file: String, _ more: String = "") -> String {
                        "/v1/info?source=\(PercentEncoding.encode(origin.url(file)))\(more)"
                    }
                    // Also for clients that accept no images.
                    let first = try await client.send(.get, path("/a"), headers: ["Accept": "application/json"])
                    #expect(first.status == 200 && first.headers["Content-Type"] == "application/json")
                    #expect(first.headers["Cache-Control"]?.hasPrefix("public, max-age=") == true)
                    #expect(first.json["format"] as? String == "jpeg" && first.json["phash"] == nil)
                    let size = "\(first.json["width"] ?? "")x\(first.json["height"] ?? "")"
                    #expect(first.headers["Halcyon-Image-Size"] == size)
                    let tag = try #require(first.headers["ETag"])
                    #expect(try await client.send(.get, path("/a"), headers: ["If-None-Match": tag]).status == 304)
                    let hashed = try await client.send(.get, path("/a", "&phash=true&palette=true&location=true"))
                    #expect((hashed.json["phash"] as? String)?.utf8.count == 16 && hashed.json["palette"] != nil)
                    #expect(origin.requests.count == 1)

                    let missing = try await client.send(.get, path("/missing"), headers: ["Accept": "image/*"])
                    #expect(missing.status == 404 && missing.json["code"] as? String == "not_found", "no placeholder")
                    #expect(try await client.send(.get, path("/broken")).status == 422)
                    for (more, name) in [("&width=9", "width"), ("&exif=true", "exif"), ("&info=true", "info")] {
                        let problem = try await client.send(.get, path("/a", more))
                        #expect(problem.status == 400)
                        #expect((problem.json["detail"] as? String)?.contains("unknown parameter \(name)") == true)
                    }
                    #expect(try await client.send(.get, path("/a", "&location=1")).status == 400)
                    #expect(try await client.send(.get, path("/a", "&phash=yes")).status == 400)
                    #expect(try await client.send(.get, "/v1/info").status == 400)
                }
            }
        }
        try await origin.stop()
    }

    /// Results of private sources are `private` in every response, so that no shared cache stores them. This includes
    /// sources behind a redirect that is `private`.
    @Test(arguments: ["private, max-age=600", "max-age=600, private=\"x\""])
    func propagatesPrivateCacheControl(_ control: String) async throws {
        let (origin, open) = (try Self.origin(control), try Self.origin())
        let redirecting = RawOrigin { _ in
            let lines = ["HTTP/1.1 301 Moved", "Location: \(open.url("/a"))", "Cache-Control: \(control)"]
            return [.text(lines.map { $0 + "\r\n" }.joined() + "Content-Length: 0\r\n\r\n")]
        }
        try await GatewayFixture.with { fixture in
            try await fixture.withWorker {
                try await fixture.withGateway { (client: GatewayClient) async throws in
                    for (origin, word) in [(origin, "private"), (redirecting, "private"), (open, "public")] {
                        for _ in 0..<2 {
                            let answer = try await client.send(.get, Self.path(origin))
                            #expect(answer.headers["Cache-Control"]?.hasPrefix("\(word), max-age=") == true)
                            let tag = try #require(answer.headers["ETag"])
                            let known = try await client.send(.get, Self.path(origin), headers: ["If-None-Match": tag])
                            #expect(known.status == 304)
                            #expect(known.headers["Cache-Control"]?.hasPrefix("\(word), ") == true)
                        }
                    }
                    let accepted = try await client.send(
                        .post, "/v1/jobs", #"{"id":"p","source":"\#(origin.url("/a"))","width":60,"height":40}"#)
                    _ = try await client.send(.get, "/v1/jobs/p?wait=500")
                    let image = try #require((accepted.json["images"] as? [String])?.first)
                    for _ in 0..<2 {
                        let answer = try await client.send(.get, image)
                        #expect(answer.status == 200)
                        #expect(answer.headers["Cache-Control"]?.hasPrefix("private, max-age=") == true)
                    }
                }
            }
        }
        for origin in [origin, open, redirecting] { try await origin.stop() }
    }

    @Test func refetchesNoStoreSourcesPerRequest() async throws {
        let origin = try Self.origin("no-store")
        try await GatewayFixture.with { fixture in
            try await fixture.withWorker {
                try await fixture.withGateway { (client: GatewayClient) async throws in
                    for count in 1...2 {
                        let answer = try await client.send(.get, Self.path(origin))
                        #expect(answer.status == 200 && answer.headers["Cache-Control"] == "no-store")
                        #expect(answer.headers["Content-Type"] == "image/jpeg" && !answer.body.isEmpty)
                        #expect(origin.requests.count == count)
                    }
                }
            }
        }
        try await origin.stop()
    }

    /// Shared caches must not take the picture for the image.
    @Test func fallbackPicturesAreNotCached() async throws {
        let origin = try Self.origin()
        try await GatewayFixture.with { fixture in
            try await fixture.withWorker {
                try await fixture.withGateway { (client: GatewayClient) async throws in
                    let fallback = "&width=60&height=40&fallback=\(PercentEncoding.encode(origin.url("/a")))"
                    for _ in 0..<2 {
                        let answer = try await client.send(.get, Self.path(origin, fallback, file: "/missing"))
                        #expect(answer.status == 200 && answer.headers["Content-Type"] == "image/jpeg")
                        #expect(answer.headers["Halcyon-Failure"] == "not_found" && !answer.body.isEmpty)
                        #expect(answer.headers["Cache-Control"] == "no-store" && answer.headers["ETag"] == nil)
                    }
                    let own = try await client.send(.get, Self.path(origin, fallback))
                    #expect(own.status == 200 && own.headers["Halcyon-Failure"] == nil && own.headers["ETag"] != nil)
                    let failed = try await client.send(.get, Self.path(origin, file: "/missing"))
                    #expect(failed.status == 404)
                }
            }
        }
        try await origin.stop()
    }

    @Test func reportsFailuresAsProblemOrPlaceholderImage() async throws {
        let origin = try Self.origin()
        try await GatewayFixture.with { fixture in
            try await fixture.withWorker {
                try await fixture.withGateway { (client: GatewayClient) async throws in
                    for (file, status, code) in [
                        ("/missing", 404, "not_found"), ("/broken", 422, "unsupported_format"),
                    ] {
                        let problem = try await client.send(.get, Self.path(origin, file: file))
                        #expect(problem.status == status && problem.json["code"] as? String == code, "\(file)")
                        #expect(problem.headers["Cache-Control"] == "no-store")
                        let image = try await client.send(
                            .get, Self.path(origin, file: file), headers: ["Accept": "image/webp,image/*"])
                        #expect(image.status == status && image.headers["Content-Type"] == "image/svg+xml")
                        #expect(image.headers["Halcyon-Failure"] == code)
                        #expect(image.headers["Cache-Control"] == "no-store")
                        #expect(image.text.contains(#"width="60" height="40""#))
                    }
                }
            }
        }
        try await origin.stop()
    }

    /// If the origin's Retry-After is longer than the client waits, the failure is the response and the job is not
    /// retried.
    @Test func failsAtOnceIfRetryAfterExceedsTheWait() async throws {
        let origin = RawOrigin { _ in RawOrigin.answer("503 Service Unavailable", ["Retry-After: 3600"]) }
        try await GatewayFixture.with { fixture in
            try await fixture.withWorker({ $0.retries = RetryPolicy() }) {
                try await fixture.withGateway { (client: GatewayClient) async throws in
                    let answer = try await client.send(.get, Self.path(origin))
                    #expect(answer.status == 502 && answer.json["code"] as? String == "http_error")
                    let image = try await client.send(
                        .get, Self.path(origin, file: "/b"), headers: ["Accept": "image/webp"])
                    #expect(image.status == 502 && image.headers["Halcyon-Failure"] != nil)
                    // A job that no client waits for is retried after that time.
                    _ = try await client.send(
                        .post, "/v1/jobs", #"{"id":"j","source":"\#(origin.url("/c"))","width":6}"#)
                    let state = try await client.send(.get, "/v1/jobs/j?wait=1")
                    #expect(["accepted", "started"].contains(state.json["state"] as? String))
                }
            }
        }
        try await origin.stop()
    }

    @Test func timesOutWith504UntilAWorkerStarts() async throws {
        let origin = try Self.origin()
        try await GatewayFixture.with { fixture in
            try await fixture.withGateway { (client: GatewayClient) async throws in
                // No worker is running yet.
                let late = try await client.send(.get, Self.path(origin, "&width=60&wait=0.2"))
                #expect(late.status == 504 && late.headers["Retry-After"] == "2")
                try await fixture.withWorker {
                    try await until("the image is rendered") {
                        try await client.send(.get, Self.path(origin, "&width=60")).status == 200
                    }
                }
            }
        }
        try await origin.stop()
    }

    @Test func disconnectCancelsTheJob() async throws {
        let origin = try Self.origin()
        try await GatewayFixture.with { fixture in
            try await fixture.withWorker {
                try await fixture.withGateway { (client: GatewayClient) async throws in
                    let leaving = Task { try await client.send(.get, Self.path(origin, file: "/hangs")) }
                    try await until("the fetch is in flight") { origin.requests.count == 1 }
                    leaving.cancel()
                    _ = try? await leaving.value
                    try await until("the fetch is aborted") { origin.cuts == 1 }
                }
            }
        }
        try await origin.stop()
    }

    @Test func rejectsInvalidQueries() async throws {
        let cases = [
            ("", 400), ("?width=5", 400), ("?source=initials:J&width=0", 400),
            ("?source=initials:J&width=5&width=6", 400), ("?source=initials:J&width=5&id=x", 400),
            ("?source=gopher://x/&width=5", 400), ("?source=http://10.0.0.1/&width=5", 403),
        ]
        try await GatewayFixture.with { fixture in
            try await fixture.withWorker {
                try await fixture.withGateway { (client: GatewayClient) async throws in
                    for (query, status) in cases {
                        let answer = try await client.send(.get, "/v1/render\(query)")
                        #expect(
                            answer.status == status && answer.headers["Content-Type"] == "application/problem+json",
                            "\(query)")
                    }
                }
            }
        }
    }

    @Test func storesNoJobState() async throws {
        try await GatewayFixture.with { fixture in
            try await fixture.withWorker {
                try await fixture.withGateway { (client: GatewayClient) async throws in
                    #expect(try await client.send(.get, "/v1/render?source=initials:J&width=5").status == 200)
                    // The worker may be faster than the end of the wait.
                    let unawaited = try await client.send(.get, "/v1/render?source=initials:J&width=6&wait=0").status
                    #expect([200, 504].contains(unawaited))
                    #expect(
                        try await client.send(.post, "/v1/jobs", #"{"id":"a","source":"initials:J","width":7}"#).status
                            == 202)
                    let redis = RedisClient(fixture.endpoint)
                    let keys = try? await redis.send(["KEYS", "halcyon:job:*"])
                    await redis.close()
                    #expect(keys?.array?.compactMap(\.string) == ["halcyon:job:a"])
                }
            }
        }
    }

    @Test func rejectsOtherMethodsAndMediaTypes() async throws {
        try await GatewayFixture.with { fixture in
            try await fixture.withGateway { (client: GatewayClient) async throws in
                let path = "/v1/render?source=initials:J&width=5"
                #expect(try await client.send(.get, path, headers: ["Accept": "application/json"]).status == 406)
                #expect(try await client.send(.post, path, "x").status == 405)
            }
        }
    }
}
