import HalcyonCluster
import HalcyonModel
import Redis
import TestSupport
import Testing

@testable import HalcyonGateway

/// The short-lived cache of images in memory.
@Suite(.limitedParallelism) struct ImageMemoryCacheTests {
    private static let start = ContinuousClock.now

    private static func options(time: Duration = .seconds(1), bytes: Int = 1 << 20) -> ImageMemoryCacheOptions {
        var options = ImageMemoryCacheOptions()
        (options.time, options.bytes) = (time, bytes)
        return options
    }

    /// Runs `body` with a stored image of this size.
    private func withStored(
        bytes: Int, for lifetime: Double = 600, _ body: (ResultCache.Stored) async throws -> Void
    ) async throws {
        let redis = try await RedisServer.start()
        let client = RedisClient(try RedisEndpoint(redis.url))
        let result: Result<Void, any Error>
        do {
            let metadata = ResultMetadata(
                width: 1, height: 1, format: .png, bytes: bytes, sha256: "ab",
                source: SourceMetadata(status: nil, etag: nil, bytes: 9, format: .png, width: 1, height: 1))
            let cache = ResultCache(client)
            let file = [UInt8](repeating: 7, count: bytes)
            _ = try await cache.store(file, metadata, as: "halcyon:{0}:1", for: lifetime, by: .response)
            let stored = try #require(try await cache.stored("halcyon:{0}:1", withBody: true))
            result = .success(try await body(stored))
        } catch {
            result = .failure(error)
        }
        await client.close()
        await redis.stop()
        try result.get()
    }

    @Test func keepsImagesForTheTTLAndAgesThem() async throws {
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

    @Test func removesPurgedImages() async throws {
        try await withStored(bytes: 100) { stored in
            let imageCache = ImageMemoryCache(Self.options())
            let targets: [Purged.Target?] = [.key("a"), .source("http://x/"), .tag("t"), nil]
            for (index, target) in targets.enumerated() {
                let then = Self.start + .milliseconds(10 * index)
                for key in ["a", "b"] { imageCache.insert(stored, as: key, at: then + .milliseconds(1)) }
                imageCache.invalidate(target, at: then + .milliseconds(3))
                #expect(imageCache.image("a", at: then + .milliseconds(3)) == nil)
                // A purge by key removes only that image.
                #expect((imageCache.image("b", at: then + .milliseconds(3)) != nil) == (target == .key("a")))
                #expect(imageCache.bytes == (target == .key("a") ? 2248 : 0))
                // An image that was requested before the purge event and read after it may have been purged.
                for early in 2...3 {
                    imageCache.insert(stored, as: "a", at: then + .milliseconds(early))
                    #expect(imageCache.image("a", at: then + .milliseconds(4)) == nil)
                }
                imageCache.insert(stored, as: "a", at: then + .milliseconds(4))
                #expect(imageCache.image("a", at: then + .milliseconds(4)) != nil)
            }
        }
    }

    @Test func imagesExpireWithTheirResult() async throws {
        try await withStored(bytes: 100) { stored in
            let imageCache = ImageMemoryCache(Self.options(time: .seconds(3600)))
            imageCache.insert(stored, as: "a", at: Self.start)
            #expect(imageCache.image("a", at: Self.start + .milliseconds(stored.remainingMilliseconds - 1)) != nil)
            #expect(imageCache.image("a", at: Self.start + .milliseconds(stored.remainingMilliseconds)) == nil)
        }
    }

    @Test func staysWithinItsCapacity() async throws {
        try await withStored(bytes: 1000) { stored in
            let imageCache = ImageMemoryCache(Self.options(bytes: 40_480))
            for index in 0..<100 {
                imageCache.insert(stored, as: "\(index)", at: Self.start + .microseconds(index))
                #expect(imageCache.bytes <= 40_480)
            }
            // The ten newest images are cached.
            let now = Self.start + .milliseconds(1)
            #expect((0..<100).filter { imageCache.image("\($0)", at: now) != nil } == Array(90..<100))
            // Inserting an image again adds no cost and makes it the newest.
            imageCache.insert(stored, as: "90", at: now)
            #expect(imageCache.bytes == 40_480)
            imageCache.insert(stored, as: "new", at: now)
            #expect(imageCache.image("90", at: now) != nil && imageCache.image("91", at: now) == nil)
            // Expired images are removed on insertion.
            imageCache.insert(stored, as: "later", at: Self.start + .seconds(60))
            #expect(imageCache.bytes == 4048)
        }
    }

    @Test func keepsNothingTooLargeOrWithoutTTL() async throws {
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
