import Formats
import HalcyonCoding
import HalcyonModel
import HalcyonResults
import TestSupport
import Testing

@testable import HalcyonCluster

/// The tags of responses and purges.
@Suite(.limitedParallelism) struct CacheTagTests {
    private static let key = ResultKey(
        "halcyon:{\(String(repeating: "0a", count: 16))}:\(String(repeating: "1b", count: 16))")!

    @Test func purgesHaveTagsOfTheResponsesTheyInvalidate() throws {
        let ofResult = CacheTag.all(of: Self.key)
        #expect(CacheTag.all(of: Purge(.key(Self.key)), hasStore: true) == [ofResult[0]])
        let source = try Source("https://example.org/cat.jpg")
        for tenant in [nil, "shop"] {
            let hash = SourceRequest(source, tenant: tenant).sourceHash
            let key = ResultKey("halcyon:{\(hash)}:\(Self.key.variantHash)")!
            let purged = CacheTag.all(of: Purge(.source(source), of: tenant), hasStore: true)
            #expect(purged == [CacheTag.all(of: key)[1]])
            // Those of another source remain.
            #expect(!purged.contains(ofResult[1]))
            var tags = CacheTag.all(of: ["a b"], of: tenant)
            if let tenant {
                #expect(CacheTag.all(of: Purge(.tenant(tenant)), hasStore: true) == [tags.removeLast()])
            }
            #expect(CacheTag.all(of: Purge(.tag("a b"), of: tenant), hasStore: false) == tags)
            // A result store has digests of tags only.
            let digest = "tag-\(TagDigest.of("a b", tenant: tenant))"
            #expect(CacheTag.all(of: Purge(.tag("a b"), of: tenant), hasStore: true) == tags + [digest])
        }
    }

    @Test func encodesWhatHeadersCannotCarry() {
        let tags = ["article-17", "a,b c", "a/b", "ü", "100%", "kind:x", "\"<&>", "{{count}}"]
        let encoded = [
            "article-17", "a%2Cb%20c", "a%2Fb", "%C3%BC", "100%25", "kind:x", "%22%3C%26%3E", "%7B%7Bcount%7D%7D",
        ]
        #expect(CacheTag.all(of: tags, of: nil) == encoded)
        #expect(CacheTag.all(of: ["a b"], of: "my/shop")[0] == "my%2Fshop/a%20b")
    }

    @Test func usesTheDigestOfATagThatIsTooLong() {
        let (fits, long) = (String(repeating: "ü", count: 42), String(repeating: "ü", count: 43))
        #expect(CacheTag.all(of: [fits], of: nil)[0].utf8.count == 252)
        let digest = ["tag-\(TagDigest.of(long, tenant: nil))"]
        #expect(CacheTag.all(of: [long], of: nil) == digest)
        #expect(CacheTag.all(of: Purge(.tag(long)), hasStore: true) == digest)
        #expect(CacheTag.all(of: Purge(.tag(long)), hasStore: false) == digest)
    }

    @Test(arguments: RedisDeployment.Kind.allCases)
    func resultsHaveTheTagsOfAllTheirJobs(on kind: RedisDeployment.Kind) async throws {
        try await ResultCacheFixture.with(kind) { cache, redis, _ in
            let key = Self.key.description
            func tags() async throws -> [String]? {
                let tags = try await cache.stored(key, withBody: true)?.tags
                let ofTenant = CacheTag.all(of: Purge(.tenant("shop")), hasStore: false)
                #expect(tags.map { $0.filter(ofTenant.contains) == ofTenant } ?? true)
                return tags?.filter { !ofTenant.contains($0) }.sorted()
            }
            func store(_ tags: [String], fence: Int = 0) async throws {
                _ = try await cache.store(
                    [1], ResultCacheFixture.metadata, as: key, for: 600, by: .response, of: "shop",
                    fence: fence, tags: tags)
            }
            try await store([])
            #expect(try await tags() == [])
            try await store(["a"])
            #expect(try await tags() == ["shop/a"])
            // A hit, and the same result once more.
            let index = TagIndex(redis)
            try await index.index(key, until: Timestamp.now.seconds + 600, under: ["b", "a"], of: "shop")
            try await store(["c"])
            #expect(try await tags() == ["shop/a", "shop/b", "shop/c"])
            // A purged result has no tags.
            #expect(try await Purger(redis).run(Purge(.tag("b"), of: "shop")) == 1)
            try await index.index(key, until: Timestamp.now.seconds + 600, under: ["d"], of: "shop")
            #expect(try await cache.stored(key, withBody: false) == nil)
            try await store(["e"], fence: 1 << 53)
            #expect(try await tags() == ["shop/e"])
        }
    }

    @Test func tooManyTagsAreNoTags() async throws {
        try await ResultCacheFixture.with { cache, redis, _ in
            let key = Self.key.description
            let tags = (0..<200).map { "\($0)-\(String(repeating: "x", count: 100))" }
            for start in stride(from: 0, to: tags.count, by: 32) {
                _ = try await cache.store(
                    [1], ResultCacheFixture.metadata, as: key, for: 600, by: .response,
                    tags: Array(tags[start..<min(start + 32, tags.count)]))
                let stored = try #require(try await cache.stored(key, withBody: false))
                let bytes = tags.prefix(start + 32).reduce(0) { $0 + $1.utf8.count + 1 }
                #expect(stored.tags?.count == (bytes <= ResultTags.maximumBytes ? start + 32 : nil))
            }
            _ = try await TagIndex(redis).index(key, until: Timestamp.now.seconds + 600, under: ["late"], of: nil)
            #expect(try #require(try await cache.stored(key, withBody: false)).tags == nil)
        }
    }
}
