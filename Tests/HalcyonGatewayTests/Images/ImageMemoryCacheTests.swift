import HalcyonCluster
import HalcyonModel
import Redis
import TestSupport
import Testing

@testable import HalcyonGateway

/// Images that are kept for a moment.
@Suite(.limitedParallelism) struct ImageMemoryCacheTests {
    private static let start = ContinuousClock.now

    private static func options(time: Duration = .seconds(1), bytes: Int = 1 << 20) -> ImageMemoryCacheOptions {
        var options = ImageMemoryCacheOptions()
        (options.time, options.bytes) = (time, bytes)
        return options
    }

    /// Runs `body` with an image of so many bytes.
    private func withStored(
        bytes: Int, for lifetime: Double = 10, _ body: (ResultCache.Stored) async throws -> Void
    ) async throws {
        let redis = try await RedisServer.start()
        let client = RedisClient(RedisEndpoint(loopbackPort: redis.port))
        let result: Result<Void, any Error>
        do {
            let facts = ResultMetadata(
                width: 1, height: 1, format: .png, bytes: bytes, sha256: "ab",
                source: SourceMetadata(status: nil, etag: nil, bytes: 9, format: .png, width: 1, height: 1))
            let tier = ResultCache(client)
            let file = [UInt8](repeating: 7, count: bytes)
            _ = try await tier.store(file, facts, as: "halcyon:{0}:1", for: lifetime, by: .response)
            let stored = try #require(try await tier.stored("halcyon:{0}:1", withBody: true))
            result = .success(try await body(stored))
        } catch {
            result = .failure(error)
        }
        await client.close()
        await redis.stop()
        try result.get()
    }

    @Test func anImageIsKeptForItsTimeAndGrowsOlder() async throws {
        try await withStored(bytes: 100) { stored in
            let imageCache = ImageMemoryCache(Self.options())
            #expect(imageCache.image("a", at: Self.start) == nil)
            imageCache.insert(stored, as: "a", at: Self.start)
            let later = try #require(imageCache.image("a", at: Self.start + .milliseconds(900)))
            #expect(later.stored.body == stored.body)
            #expect(
                later.remainingMilliseconds(at: Self.start + .milliseconds(900)) == stored.remainingMilliseconds - 900)
            #expect(imageCache.image("a", at: Self.start + .seconds(1)) == nil)
            #expect(imageCache.image("b", at: Self.start) == nil)
            imageCache.remove("a")
            imageCache.remove("b")
            #expect(imageCache.image("a", at: Self.start) == nil && imageCache.bytes == 0)
            imageCache.insert(stored, as: "a", at: Self.start)
            #expect(imageCache.image("a", at: Self.start) != nil)
        }
    }

    @Test func whatWasPurgedIsForgotten() async throws {
        try await withStored(bytes: 100) { stored in
            let imageCache = ImageMemoryCache(Self.options())
            let targets: [Purged.Target?] = [.key("a"), .source("http://x/"), .tag("t"), nil]
            for (index, target) in targets.enumerated() {
                let then = Self.start + .milliseconds(10 * index)
                for key in ["a", "b"] { imageCache.insert(stored, as: key, at: then + .milliseconds(1)) }
                imageCache.invalidate(target, at: then + .milliseconds(3))
                #expect(imageCache.image("a", at: then + .milliseconds(3)) == nil)
                // By a key it is known which one it is.
                #expect((imageCache.image("b", at: then + .milliseconds(3)) != nil) == (target == .key("a")))
                #expect(imageCache.bytes == (target == .key("a") ? 2248 : 0))
                // Asked for before the purge was heard of, answered afterwards: it may be what was purged.
                for early in 2...3 {
                    imageCache.insert(stored, as: "a", at: then + .milliseconds(early))
                    #expect(imageCache.image("a", at: then + .milliseconds(4)) == nil)
                }
                imageCache.insert(stored, as: "a", at: then + .milliseconds(4))
                #expect(imageCache.image("a", at: then + .milliseconds(4)) != nil)
            }
        }
    }

    @Test func noImageOutlivesItself() async throws {
        try await withStored(bytes: 100) { stored in
            let imageCache = ImageMemoryCache(Self.options(time: .seconds(60)))
            imageCache.insert(stored, as: "a", at: Self.start)
            #expect(imageCache.image("a", at: Self.start + .milliseconds(stored.remainingMilliseconds - 1)) != nil)
            #expect(imageCache.image("a", at: Self.start + .milliseconds(stored.remainingMilliseconds)) == nil)
        }
    }

    @Test func thereAreNeverMoreBytesThanAreAllowed() async throws {
        try await withStored(bytes: 1000) { stored in
            let imageCache = ImageMemoryCache(Self.options(bytes: 40_480))
            for index in 0..<100 {
                imageCache.insert(stored, as: "\(index)", at: Self.start + .microseconds(index))
                #expect(imageCache.bytes <= 40_480)
            }
            // The ten latest are there.
            let now = Self.start + .milliseconds(1)
            #expect((0..<100).filter { imageCache.image("\($0)", at: now) != nil } == Array(90..<100))
            // The same one again costs nothing more, and is the latest then.
            imageCache.insert(stored, as: "90", at: now)
            #expect(imageCache.bytes == 40_480)
            imageCache.insert(stored, as: "new", at: now)
            #expect(imageCache.image("90", at: now) != nil && imageCache.image("91", at: now) == nil)
            // What is over goes when something comes.
            imageCache.insert(stored, as: "later", at: Self.start + .seconds(60))
            #expect(imageCache.bytes == 4048)
        }
    }

    @Test func largeImagesAndThoseOfNoTimeAreNotKept() async throws {
        try await withStored(bytes: 1000) { stored in
            for options in [Self.options(bytes: 8 * 4048 - 1), Self.options(time: .zero), Self.options(bytes: 0)] {
                let imageCache = ImageMemoryCache(options)
                imageCache.insert(stored, as: "a", at: Self.start)
                #expect(imageCache.image("a", at: Self.start) == nil && imageCache.bytes == 0)
            }
            let imageCache = ImageMemoryCache(Self.options(bytes: 8 * 4048))
            imageCache.insert(stored, as: "a", at: Self.start)
            #expect(imageCache.image("a", at: Self.start) != nil)
        }
    }
}
