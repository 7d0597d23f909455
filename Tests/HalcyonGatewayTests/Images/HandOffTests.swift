import HalcyonCluster
import HalcyonModel
import Redis
import TestSupport
import Testing

@testable import HalcyonGateway

/// Images that were made for one reader.
@Suite(.limitedParallelism) struct HandOffTests {
    @Test(arguments: RedisDeployment.Kind.allCases)
    func aHandOffIsGivenOnce(on kind: RedisDeployment.Kind) async throws {
        try await ImageFixture.with(kind) { setting in
            let key = ResultCache.handOffKey(for: try #require(ResultKey(ImageFixture.key)))
            _ = try await setting.tier.storeOnce(
                ImageFixture.body, ImageFixture.facts(ImageFixture.body, .webp), as: key, for: 600)
            // Looking does not take it.
            for _ in 0..<2 {
                let head = try await setting.ask("HEAD", key)
                #expect(head.status == 200 && head.headers["cache-control"] == "no-store")
                #expect(head.headers["content-length"] == "\(ImageFixture.body.count)")
            }
            let answer = try await setting.get(key, "Range: bytes=0-3\r\nIf-None-Match: *\r\n")
            #expect(answer.status == 200 && answer.body == ImageFixture.body)
            #expect(answer.headers["content-type"] == "image/webp" && answer.headers["cache-control"] == "no-store")
            #expect(answer.headers["etag"] == nil && answer.headers["accept-ranges"] == nil)
            #expect(try await setting.get(key).status == 404)
            #expect(try await setting.ask("HEAD", key).status == 404)
        }
    }

    @Test func ofManyReadersOneHasTheHandOff() async throws {
        try await ImageFixture.with { setting in
            let key = ResultCache.handOffKey(for: try #require(ResultKey(ImageFixture.key)))
            _ = try await setting.tier.storeOnce(
                ImageFixture.body, ImageFixture.facts(ImageFixture.body), as: key, for: 600)
            let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<10 { group.addTask { try await setting.get(key).status } }
                return try await group.reduce(into: [Int]()) { $0.append($1) }
            }
            #expect(statuses.sorted() == [200] + Array(repeating: 404, count: 9))
        }
    }

    @Test func aHandOffIsNotKept() async throws {
        try await ImageFixture.with(imageCache: ImageMemoryCacheOptions()) { setting in
            let key = ResultCache.handOffKey(for: try #require(ResultKey(ImageFixture.key)))
            _ = try await setting.tier.storeOnce(
                ImageFixture.body, ImageFixture.facts(ImageFixture.body), as: key, for: 600)
            #expect(try await setting.get(key).status == 200)
            #expect(try await setting.get(key).status == 404)
        }
    }
}
