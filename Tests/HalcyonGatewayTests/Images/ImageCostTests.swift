import Formats
import HTTPServer
import HalcyonModel
import Redis
import TestSupport
import Testing

@testable import HalcyonGateway

/// The load that images cause in Redis, and its reduction by the cache in memory.
@Suite(.limitedParallelism) struct ImageCostTests {
    @Test func readsInOneRoundTripAndBytesOnlyWhenSent() async throws {
        try await ImageFixture.with { fixture in
            let large = [UInt8](repeating: 7, count: 1_000_000)
            _ = try await fixture.cache.store(
                large, ImageFixture.metadata(large), as: ImageFixture.key, for: 600, by: .response)
            func sent() async throws -> Int {
                let text = try await fixture.redis.send(["INFO", "stats"]).string ?? ""
                let line = text.split(whereSeparator: \.isNewline).first { $0.hasPrefix("total_net_output_bytes:") }
                return try #require(line?.split(separator: ":").last.flatMap { Int($0) })
            }
            let names: Set = ["hmget", "pttl", "hget", "evalsha", "eval"]
            let before = try await fixture.calls(names)
            _ = try await fixture.get(ImageFixture.key)
            let after = try await fixture.calls(names)
            #expect((after["hmget"] ?? 0) == (before["hmget"] ?? 0) + 1)
            #expect((after["pttl"] ?? 0) == (before["pttl"] ?? 0) + 1)
            #expect(after["evalsha"] == before["evalsha"] && after["hget"] == before["hget"])

            let start = try await sent()
            for _ in 0..<5 { _ = try await fixture.ask("HEAD", ImageFixture.key) }
            let tag = "\"\(ImageFixture.metadata(large).sha256)\""
            for _ in 0..<5 { _ = try await fixture.get(ImageFixture.key, "If-None-Match: \(tag)\r\n") }
            #expect(try await sent() - start < 500_000)
        }
    }

    @Test func repeatedRequestsAreServedFromMemory() async throws {
        var imageCache = ImageMemoryCacheOptions()
        // No image expires during the test. ImageMemoryCacheTests cover expiry.
        imageCache.time = .seconds(500)
        try await ImageFixture.with(imageCache: imageCache) { fixture in
            let metadata = ImageFixture.metadata(ImageFixture.body)
            _ = try await fixture.cache.store(
                ImageFixture.body, metadata, as: ImageFixture.key, for: 600, by: .response)
            // An image without its bytes is not cached.
            _ = try await fixture.ask("HEAD", ImageFixture.key)
            let first = try await fixture.get(ImageFixture.key)
            _ = try await fixture.redis.send(["DEL", .string(ImageFixture.key)])
            let before = try await fixture.calls(["hmget", "pttl"])
            let second = try await fixture.get(ImageFixture.key)
            #expect(second.status == 200 && second.body == ImageFixture.body)
            for name in ["etag", "content-type", "accept-ranges"] {
                #expect(second.headers[name] == first.headers[name])
            }
            #expect(try ImageFixture.maxAge(second) <= ImageFixture.maxAge(first))
            let head = try await fixture.ask("HEAD", ImageFixture.key)
            #expect(head.status == 200 && head.headers["content-length"] == "\(ImageFixture.body.count)")
            #expect(try await fixture.get(ImageFixture.key, "If-None-Match: \"\(metadata.sha256)\"\r\n").status == 304)
            #expect(try await fixture.get(ImageFixture.key, "If-None-Match: \"x\"\r\n").body == ImageFixture.body)
            let part = try await fixture.get(ImageFixture.key, "Range: bytes=0-3\r\n")
            #expect(part.status == 206 && part.body.elementsEqual(ImageFixture.body[..<4]))
            #expect(try await fixture.calls(["hmget", "pttl"]) == before)
        }
    }

    @Test func cacheLifetimeEndsWithTheSignedURL() async throws {
        let urlKeys = ["1": [UInt8](repeating: 1, count: 32)]
        let access = AccessOptions.with {
            $0.keys = [APIKey(name: "k", secret: "k", scopes: [.read])]
            ($0.urlKeys, $0.requiresExpiry) = (urlKeys, false)
        }
        try await ImageFixture.with(.server, access) { fixture in
            _ = try await fixture.cache.store(
                ImageFixture.body, ImageFixture.metadata(ImageFixture.body), as: ImageFixture.key, for: 100_000,
                by: .response)
            let client = try RawClient(fixture.port)
            #expect(try await fixture.get(ImageFixture.key).status == 401)
            let private_ = try await fixture.get(ImageFixture.key, "X-API-Key: k\r\n")
            #expect(private_.headers["cache-control"]?.hasPrefix("private, max-age=99") == true)
            let signer = URLSigner(keys: urlKeys, requiresExpiry: false)
            let now = Timestamp.now.milliseconds / 1000
            let short = try #require(signer.sign(fixture.target(ImageFixture.key), keyId: "1", expires: now + 1000))
            let signed = try await client.get(short)
            #expect(signed.status == 200 && signed.body == ImageFixture.body)
            #expect(signed.headers["cache-control"]?.hasPrefix("public, max-age=") == true)
            #expect((1...1000).contains(try ImageFixture.maxAge(signed)))
            let endless = try #require(signer.sign(fixture.target(ImageFixture.key), keyId: "1", expires: nil))
            #expect(try await client.get(endless).headers["cache-control"]?.hasPrefix("public, max-age=99") == true)
        }
    }

    /// Pages of all origins may read the response that requests share.
    @Test func sharedResponsesHaveCORSHeaders() async throws {
        var imageCache = ImageMemoryCacheOptions()
        imageCache.time = .seconds(500)
        try await ImageFixture.with(.server, .with { $0.origins = ["*"] }, imageCache: imageCache) { fixture in
            _ = try await fixture.cache.store(
                ImageFixture.body, ImageFixture.metadata(ImageFixture.body), as: ImageFixture.key, for: 600,
                by: .response)
            for headers in ["", "", "Origin: https://any.example\r\n"] {
                let answer = try await fixture.get(ImageFixture.key, headers)
                #expect(answer.status == 200 && answer.body == ImageFixture.body)
                #expect(answer.headers["access-control-allow-origin"] == "*")
            }
        }
    }

    /// Responses from memory equal responses from Redis, for all kinds of clients and requests.
    @Test func cachedResponsesEqualUncachedResponses() async throws {
        let urlKeys = ["1": [UInt8](repeating: 1, count: 32)]
        let access = AccessOptions.with {
            $0.keys = [APIKey(name: "k", secret: "k", scopes: [.read])]
            ($0.urlKeys, $0.requiresExpiry) = (urlKeys, false)
            ($0.origins, $0.limits.concurrency) = (["https://a.example"], 1)
        }
        var imageCache = ImageMemoryCacheOptions()
        imageCache.time = .seconds(500)
        let small = ImageFixture.body
        let large = [UInt8](repeating: 7, count: HTTPServer.SharedResponse.mostBytes + 1)
        for body in [small, large] {
            var answers: [[RawClient.RawResponse]] = []
            for options in [ImageMemoryCacheOptions.none, imageCache] {
                try await ImageFixture.with(.server, access, imageCache: options) { fixture in
                    _ = try await fixture.cache.store(
                        body, ImageFixture.metadata(body), as: ImageFixture.key, for: 1000, by: .response)
                    let signer = URLSigner(keys: urlKeys, requiresExpiry: false)
                    let signed = try #require(signer.sign(fixture.target(ImageFixture.key), keyId: "1", expires: nil))
                    let client = try RawClient(fixture.port)
                    let key = "X-API-Key: k\r\n"
                    let tag = try #require(try await client.get(fixture.target(ImageFixture.key), key).headers["etag"])
                    var all: [RawClient.RawResponse] = []
                    for _ in 0..<2 {
                        for headers in [
                            "", "Range: bytes=1-3\r\n", "Range: bytes=\(body.count)-\r\n", "If-None-Match: \(tag)\r\n",
                            "If-None-Match: \"b\"\r\n", "If-Range: \"b\"\r\nRange: bytes=1-3\r\n",
                            "If-Match: \(tag)\r\n", "If-Match: \"b\"\r\n",
                            "Origin: https://a.example\r\n", "Origin: https://b.example\r\n",
                        ] {
                            for method in ["GET", "HEAD"] {
                                all.append(
                                    try await client.ask(method, fixture.target(ImageFixture.key), key + headers))
                                all.append(try await client.ask(method, signed, headers))
                            }
                        }
                        all.append(try await client.get(fixture.target(ImageFixture.key)))
                    }
                    answers.append(all)
                }
            }
            for (other, kept) in zip(answers[0], answers[1]) {
                #expect(other.status == kept.status && other.body == kept.body)
                // These may differ by a second.
                let changing: Set = ["date", "cache-control"]
                #expect(
                    other.headers.filter { !changing.contains($0.key) }
                        == kept.headers.filter { !changing.contains($0.key) })
                #expect(
                    other.headers["cache-control"]?.prefix { $0 != "=" }
                        == kept.headers["cache-control"]?.prefix { $0 != "=" })
                if other.status == 200 {
                    #expect(abs(try ImageFixture.maxAge(other) - ImageFixture.maxAge(kept)) < 300)
                }
            }
        }
    }
}
