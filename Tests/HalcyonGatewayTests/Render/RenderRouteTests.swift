import Formats
import Foundation
import HalcyonModel
import Redis
import TestSupport
import Testing

@testable import HalcyonGateway

/// Images by the query of a URL, through a whole cluster.
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

    @Test func anImageIsMadeOnceAndThenThere() async throws {
        let origin = try Self.origin()
        try await GatewayFixture.with { fixture in
            try await fixture.withWorker {
                try await fixture.withGateway { (ask: Asking) async throws in
                    let made = try await ask(.get, Self.path(origin))
                    #expect(made.status == 200 && made.headers["Content-Type"] == "image/jpeg")
                    #expect(made.headers["Cache-Control"]?.contains("max-age=") == true)
                    #expect(made.headers["Vary"] == "Accept")
                    let tag = try #require(made.headers["ETag"])
                    let there = try await ask(.get, Self.path(origin))
                    #expect(there.body == made.body && there.headers["ETag"] == tag)
                    #expect(try await ask(.get, Self.path(origin), headers: ["If-None-Match": tag]).status == 304)
                    let head = try await ask(.head, Self.path(origin))
                    #expect(head.status == 200 && head.body.isEmpty)
                    // Browsers get what they know.
                    let webp = try await ask(.get, Self.path(origin), headers: ["Accept": "image/webp,*/*;q=0.8"])
                    #expect(webp.headers["Content-Type"] == "image/webp")
                    let png = try await ask(
                        .get, Self.path(origin, "&width=60&format=png"), headers: ["Accept": "image/webp,*/*;q=0.8"])
                    #expect(png.headers["Content-Type"] == "image/png")
                    #expect(origin.requests.count == 1)
                }
            }
        }
        try await origin.stop()
    }

    /// What an origin has for one reader alone no cache for many is told to keep, wherever it is read, also when a redirect said so.
    @Test(arguments: ["private, max-age=600", "max-age=600, private=\"x\""])
    func whatIsPrivateAtTheOriginIsPrivateHere(_ control: String) async throws {
        let (origin, open) = (try Self.origin(control), try Self.origin())
        let redirecting = RawOrigin { _ in
            let lines = ["HTTP/1.1 301 Moved", "Location: \(open.url("/a"))", "Cache-Control: \(control)"]
            return [.text(lines.map { $0 + "\r\n" }.joined() + "Content-Length: 0\r\n\r\n")]
        }
        try await GatewayFixture.with { fixture in
            try await fixture.withWorker {
                try await fixture.withGateway { (ask: Asking) async throws in
                    for (origin, word) in [(origin, "private"), (redirecting, "private"), (open, "public")] {
                        for _ in 0..<2 {
                            let answer = try await ask(.get, Self.path(origin))
                            #expect(answer.headers["Cache-Control"]?.hasPrefix("\(word), max-age=") == true)
                            let tag = try #require(answer.headers["ETag"])
                            let known = try await ask(.get, Self.path(origin), headers: ["If-None-Match": tag])
                            #expect(known.status == 304)
                            #expect(known.headers["Cache-Control"]?.hasPrefix("\(word), ") == true)
                        }
                    }
                    let taken = try await ask(
                        .post, "/v1/jobs", #"{"id":"p","source":"\#(origin.url("/a"))","width":60,"height":40}"#)
                    _ = try await ask(.get, "/v1/jobs/p?wait=30")
                    let image = try #require((taken.json["images"] as? [String])?.first)
                    for _ in 0..<2 {
                        let answer = try await ask(.get, image)
                        #expect(answer.status == 200)
                        #expect(answer.headers["Cache-Control"]?.hasPrefix("private, max-age=") == true)
                    }
                }
            }
        }
        for origin in [origin, open, redirecting] { try await origin.stop() }
    }

    @Test func whatMayNotBeStoredIsGivenOnce() async throws {
        let origin = try Self.origin("no-store")
        try await GatewayFixture.with { fixture in
            try await fixture.withWorker {
                try await fixture.withGateway { (ask: Asking) async throws in
                    for count in 1...2 {
                        let answer = try await ask(.get, Self.path(origin))
                        #expect(answer.status == 200 && answer.headers["Cache-Control"] == "no-store")
                        #expect(answer.headers["Content-Type"] == "image/jpeg" && !answer.body.isEmpty)
                        #expect(origin.requests.count == count)
                    }
                }
            }
        }
        try await origin.stop()
    }

    @Test func whatCannotBeMadeIsSaidInWordsOrAsAPicture() async throws {
        let origin = try Self.origin()
        try await GatewayFixture.with { fixture in
            try await fixture.withWorker {
                try await fixture.withGateway { (ask: Asking) async throws in
                    for (file, status, code) in [
                        ("/missing", 404, "not_found"), ("/broken", 422, "unsupported_format"),
                    ] {
                        let words = try await ask(.get, Self.path(origin, file: file))
                        #expect(words.status == status && words.json["code"] as? String == code, "\(file)")
                        #expect(words.headers["Cache-Control"] == "no-store")
                        let picture = try await ask(
                            .get, Self.path(origin, file: file), headers: ["Accept": "image/webp,image/*"])
                        #expect(picture.status == status && picture.headers["Content-Type"] == "image/svg+xml")
                        #expect(picture.headers["Halcyon-Failure"] == code)
                        #expect(picture.headers["Cache-Control"] == "no-store")
                        #expect(picture.text.contains(#"width="60" height="40""#))
                    }
                }
            }
        }
        try await origin.stop()
    }

    /// The origin asks to be left alone for longer than anybody waits: that is the answer, and the job is not tried again for nobody.
    @Test func whatWouldBeTriedAgainTooLateIsToldAtOnce() async throws {
        let origin = RawOrigin { _ in RawOrigin.answer("503 Service Unavailable", ["Retry-After: 3600"]) }
        try await GatewayFixture.with { fixture in
            try await fixture.withWorker({ $0.retries = RetryPolicy() }) {
                try await fixture.withGateway { (ask: Asking) async throws in
                    let answer = try await ask(.get, Self.path(origin))
                    #expect(answer.status == 502 && answer.json["code"] as? String == "http_error")
                    let picture = try await ask(.get, Self.path(origin, file: "/b"), headers: ["Accept": "image/webp"])
                    #expect(picture.status == 502 && picture.headers["Halcyon-Failure"] != nil)
                    // A job that nobody waits for is tried again when it may be.
                    _ = try await ask(.post, "/v1/jobs", #"{"id":"j","source":"\#(origin.url("/c"))","width":6}"#)
                    let state = try await ask(.get, "/v1/jobs/j?wait=1")
                    #expect(["accepted", "started"].contains(state.json["state"] as? String))
                }
            }
        }
        try await origin.stop()
    }

    @Test func whoWaitsTooLongIsToldAndTheImageIsMade() async throws {
        let origin = try Self.origin()
        try await GatewayFixture.with { fixture in
            try await fixture.withGateway { (ask: Asking) async throws in
                // Nobody works yet.
                let late = try await ask(.get, Self.path(origin, "&width=60&wait=0.2"))
                #expect(late.status == 504 && late.headers["Retry-After"] == "2")
                try await fixture.withWorker {
                    try await until("the image is there") {
                        try await ask(.get, Self.path(origin, "&width=60")).status == 200
                    }
                }
            }
        }
        try await origin.stop()
    }

    @Test func whoLeavesCancelsTheJob() async throws {
        let origin = try Self.origin()
        try await GatewayFixture.with { fixture in
            try await fixture.withWorker {
                try await fixture.withGateway { (ask: Asking) async throws in
                    let leaving = Task { try await ask(.get, Self.path(origin, file: "/hangs")) }
                    try await until("it is under way") { origin.requests.count == 1 }
                    leaving.cancel()
                    _ = try? await leaving.value
                    try await until("the transfer is cut") { origin.cuts == 1 }
                }
            }
        }
        try await origin.stop()
    }

    @Test(arguments: [
        ("", 400), ("?width=5", 400), ("?source=initials:J&width=0", 400),
        ("?source=initials:J&width=5&width=6", 400), ("?source=initials:J&width=5&id=x", 400),
        ("?source=gopher://x/&width=5", 400), ("?source=http://10.0.0.1/&width=5", 403),
    ])
    func whatMakesNoSenseIsRefused(_ query: String, _ status: Int) async throws {
        try await GatewayFixture.with { fixture in
            try await fixture.withWorker {
                try await fixture.withGateway { (ask: Asking) async throws in
                    let answer = try await ask(.get, "/v1/render\(query)")
                    #expect(answer.status == status && answer.headers["Content-Type"] == "application/problem+json")
                }
            }
        }
    }

    @Test func itsJobLeavesNothingBehind() async throws {
        try await GatewayFixture.with { fixture in
            try await fixture.withWorker {
                try await fixture.withGateway { (ask: Asking) async throws in
                    #expect(try await ask(.get, "/v1/render?source=initials:J&width=5").status == 200)
                    #expect(try await ask(.get, "/v1/render?source=initials:J&width=6&wait=0").status == 504)
                    #expect(
                        try await ask(.post, "/v1/jobs", #"{"id":"a","source":"initials:J","width":7}"#).status == 202)
                    let redis = RedisClient(fixture.endpoint)
                    let keys = try? await redis.send(["KEYS", "halcyon:job:*"])
                    await redis.close()
                    #expect(keys?.array?.compactMap(\.string) == ["halcyon:job:a"])
                }
            }
        }
    }

    @Test func nothingButImagesIsHere() async throws {
        try await GatewayFixture.with { fixture in
            try await fixture.withGateway { (ask: Asking) async throws in
                let path = "/v1/render?source=initials:J&width=5"
                #expect(try await ask(.get, path, headers: ["Accept": "application/json"]).status == 406)
                #expect(try await ask(.post, path, "x").status == 405)
            }
        }
    }
}
