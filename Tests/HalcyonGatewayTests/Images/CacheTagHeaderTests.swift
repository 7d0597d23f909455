import Formats
import HalcyonCluster
import HalcyonModel
import HalcyonResults
import Telemetry
import TestSupport
import Testing

@testable import HalcyonGateway

/// The headers by which CDNs purge images.
@Suite(.limitedParallelism) struct CacheTagHeaderTests {
    private static let key = "key-\(ImageFixture.source)-\(String(repeating: "1b", count: 16))"
    private static let source = "source-\(ImageFixture.source)"

    private static func options(
        _ headers: [CacheTagOptions.Header] = CacheTagOptions.Header.allCases, bytes: Int? = nil
    ) -> CacheTagOptions {
        var options = CacheTagOptions()
        options.headers = headers
        if let bytes { options.maximumBytes = bytes }
        return options
    }

    private func store(_ tags: [String], in fixture: ImageFixture, of tenant: String? = nil) async throws {
        _ = try await fixture.cache.store(
            ImageFixture.body, ImageFixture.metadata(ImageFixture.body), as: ImageFixture.key, for: 600,
            by: .response, of: tenant, tags: tags)
    }

    @Test func imagesCarryTheirKeySourceAndTags() async throws {
        var memory = ImageMemoryCacheOptions()
        memory.time = .seconds(60)
        for imageCache in [.none, memory] {
            try await ImageFixture.with(imageCache: imageCache, cacheTags: Self.options()) { fixture in
                try await store(["article-17", "a,b c"], in: fixture)
                let tag = "\"\(ImageFixture.metadata(ImageFixture.body).sha256)\""
                let requests = [
                    ("GET", "", 200), ("GET", "", 200), ("HEAD", "", 200), ("GET", "Range: bytes=0-3\r\n", 206),
                    ("GET", "If-None-Match: \(tag)\r\n", 304),
                ]
                for (method, headers, status) in requests {
                    let answer = try await fixture.ask(method, ImageFixture.key, headers)
                    #expect(answer.status == status)
                    #expect(answer.headers["cache-tag"] == "\(Self.key),\(Self.source),article-17,a%2Cb%20c")
                    let keys = "\(Self.key) \(Self.source) article-17 a%2Cb%20c"
                    #expect(answer.headers["surrogate-key"] == keys && answer.headers["xkey"] == keys)
                    #expect(answer.headers["cache-control"]?.hasPrefix("public, ") == true)
                }
            }
        }
    }

    @Test func imagesHaveOnlyTheConfiguredHeaders() async throws {
        for headers in [[], [.surrogateKey]] as [[CacheTagOptions.Header]] {
            try await ImageFixture.with(cacheTags: Self.options(headers)) { fixture in
                try await store([], in: fixture)
                let answer = try await fixture.get(ImageFixture.key)
                #expect(answer.headers["surrogate-key"] == (headers.isEmpty ? nil : "\(Self.key) \(Self.source)"))
                #expect(answer.headers["cache-tag"] == nil && answer.headers["xkey"] == nil)
                // What can be read once is not cached.
                let once = ResultCache.handOffKey(for: try #require(ResultKey(ImageFixture.key)))
                _ = try await fixture.cache.storeOnce(
                    ImageFixture.body, ImageFixture.metadata(ImageFixture.body), as: once, for: 60)
                #expect(try await fixture.get(once).headers["surrogate-key"] == nil)
            }
        }
        #expect(CacheTagOptions().headers.isEmpty && CacheTagOptions().maximumBytes == 8192)
    }

    /// A purge would not reach a response of a CDN without all of its tags.
    @Test func imagesWithTooManyTagsArePrivate() async throws {
        let fits = "\(Self.key),\(Self.source),a".utf8.count
        for (bytes, isPublic) in [(fits, true), (fits - 1, false)] {
            try await ImageFixture.with(cacheTags: Self.options([.cacheTag], bytes: bytes)) { fixture in
                try await store(["a"], in: fixture)
                let answer = try await fixture.get(ImageFixture.key)
                #expect(answer.status == 200 && (answer.headers["cache-tag"] != nil) == isPublic)
                #expect(answer.headers["cache-control"]?.hasPrefix(isPublic ? "public, " : "private, ") == true)
            }
        }
        try await ImageFixture.with(cacheTags: Self.options(bytes: 16 << 10)) { fixture in
            let tags = (0..<140).map { "\($0)-\(String(repeating: "x", count: 108))" }
            for start in stride(from: 0, to: 140, by: 20) {
                try await store(Array(tags[start..<start + 20]), in: fixture)
            }
            // 16 KiB in each of three headers.
            let answer = try await fixture.get(ImageFixture.key)
            #expect(answer.status == 200 && answer.body == ImageFixture.body)
            for name in ["cache-tag", "surrogate-key", "xkey"] {
                #expect((15_500...16_384).contains(answer.headers[name]?.utf8.count ?? 0))
            }
            try await store((0..<20).map { "more \($0) \(String(repeating: "x", count: 100))" }, in: fixture)
            let other = try await fixture.get(ImageFixture.key)
            #expect(other.headers["cache-control"]?.hasPrefix("private, ") == true)
            #expect(other.headers["cache-tag"] == nil)
        }
    }

    @Test func restoredImagesHaveDigestsOfTheirTags() async throws {
        let folder = TemporaryFolder("results")
        var options = ResultStoreOptions(.folder("\(folder.path)/store"))
        options.readTimeout = .seconds(600)
        let store = try ResultStore.open(options, log: .silent, metrics: Metrics())
        store.start()
        let now = Timestamp.now.milliseconds
        let result = StoredResult(
            key: try #require(ResultKey(ImageFixture.key)), tenant: "shop", body: ImageFixture.body,
            metadata: ImageFixture.metadata(ImageFixture.body), expiresAt: now + 600_000, storedAt: now, rule: "0",
            fence: now * 1000, since: now * 1000)
        try await store.ensure(result, tags: ["a", "b"])
        try await ImageFixture.with(store: store, cacheTags: Self.options([.cacheTag])) { fixture in
            let answer = try await fixture.get(ImageFixture.key)
            let tags = Set((answer.headers["cache-tag"] ?? "").split(separator: ",").map(String.init))
            #expect(answer.status == 200 && tags.count == 5)
            #expect(tags.isSuperset(of: CacheTag.all(of: Purge(.tenant("shop")), hasStore: true)))
            for tag in ["a", "b"] {
                let purged = CacheTag.all(of: Purge(.tag(tag), of: "shop"), hasStore: true)
                #expect(tags.intersection(purged).count == 1)
                #expect(tags.isDisjoint(with: CacheTag.all(of: Purge(.tag(tag)), hasStore: true)))
            }
        }
        await store.close(within: .seconds(60))
        await folder.remove()
    }

    /// In a whole cluster: the tags of a purge are in the responses of `/v1/images` and `/v1/render` before it.
    @Test func purgesNameTheTagsOfResponses() async throws {
        try await GatewayFixture.with { fixture in
            try await fixture.withWorker {
                try await fixture.withGateway({
                    $0.cacheTags = Self.options([.cacheTag])
                    $0.imageCache.time = .zero
                }) {
                    (client: GatewayClient) async throws in
                    func tags(_ path: String) async throws -> [String] {
                        let answer = try await client.send(.get, path)
                        #expect(answer.status == 200)
                        return (answer.headers["Cache-Tag"] ?? "").split(separator: ",").map(String.init)
                    }
                    let rendered = "/v1/render?source=initials:A&width=8&tags=blue+one"
                    for name in ["tag", "source", "key"] {
                        let first = try await tags(rendered)
                        #expect(first.last == "blue%20one")
                        #expect(try await tags(rendered) == first)
                        // A job with another tag.
                        let job = #"{"id":"\#(name)","source":"initials:A","width":8,"tags":["two"]}"#
                        let accepted = try await client.send(.post, "/v1/jobs", job)
                        let image = try #require((accepted.json["images"] as? [String])?.first)
                        #expect(
                            try await client.send(.get, "/v1/jobs/\(name)?wait=500").json["state"] as? String
                                == "ready")
                        let all = try await tags(image)
                        #expect(all.contains("two"))
                        let key = try #require(image.split(separator: "/").last?.removingPercentEncoding)
                        let value = ["tag": "two", "source": "initials:A", "key": key][name] ?? ""
                        let purged = try await client.send(.post, "/v1/purge", #"{"\#(name)":"\#(value)"}"#)
                        let gone = try #require(purged.json["cacheTags"] as? [String])
                        #expect(purged.status == 200 && gone.count == 1 && all.contains(gone[0]))
                        try await until("the image is gone") { try await client.send(.get, image).status == 404 }
                        _ = try await client.send(.post, "/v1/purge", #"{"source":"initials:A"}"#)
                    }
                }
            }
        }
    }
}
