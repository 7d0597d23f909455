import HalcyonCluster
import HalcyonModel
import Redis
import TestSupport
import Testing

@testable import HalcyonGateway

/// Results that can be read only once.
@Suite(.limitedParallelism) struct HandOffTests {
    @Test(arguments: RedisDeployment.Kind.allCases)
    func isDeliveredOnce(on kind: RedisDeployment.Kind) async throws {
        try await ImageFixture.with(kind) { fixture in
            let key = ResultCache.handOffKey(for: try #require(ResultKey(ImageFixture.key)))
            _ = try await fixture.cache.storeOnce(
                ImageFixture.body, ImageFixture.metadata(ImageFixture.body, .webp), as: key, for: 600)
            // HEAD does not consume it.
            for _ in 0..<2 {
                let head = try await fixture.ask("HEAD", key)
                #expect(head.status == 200 && head.headers["cache-control"] == "no-store")
                #expect(head.headers["content-length"] == "\(ImageFixture.body.count)")
                #expect(head.headers["halcyon-image-size"] == "4x3")
            }
            let answer = try await fixture.get(key, "Range: bytes=0-3\r\nIf-None-Match: *\r\n")
            #expect(answer.status == 200 && answer.body == ImageFixture.body)
            #expect(answer.headers["content-type"] == "image/webp" && answer.headers["cache-control"] == "no-store")
            #expect(answer.headers["etag"] == nil && answer.headers["accept-ranges"] == nil)
            #expect(answer.headers["halcyon-image-size"] == "4x3")
            #expect(try await fixture.get(key).status == 404)
            #expect(try await fixture.ask("HEAD", key).status == 404)
        }
    }

    @Test func isDeliveredToOneOfManyReaders() async throws {
        try await ImageFixture.with { fixture in
            let key = ResultCache.handOffKey(for: try #require(ResultKey(ImageFixture.key)))
            _ = try await fixture.cache.storeOnce(
                ImageFixture.body, ImageFixture.metadata(ImageFixture.body), as: key, for: 600)
            let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<10 { group.addTask { try await fixture.get(key).status } }
                return try await group.reduce(into: [Int]()) { $0.append($1) }
            }
            #expect(statuses.sorted() == [200] + Array(repeating: 404, count: 9))
        }
    }

    @Test func isNotCachedInMemory() async throws {
        try await ImageFixture.with(imageCache: ImageMemoryCacheOptions()) { fixture in
            let key = ResultCache.handOffKey(for: try #require(ResultKey(ImageFixture.key)))
            _ = try await fixture.cache.storeOnce(
                ImageFixture.body, ImageFixture.metadata(ImageFixture.body), as: key, for: 600)
            #expect(try await fixture.get(key).status == 200)
            #expect(try await fixture.get(key).status == 404)
        }
    }
}
