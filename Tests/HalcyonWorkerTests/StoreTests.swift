import Concurrency
import Formats
import HalcyonCluster
import HalcyonCoding
import HalcyonModel
import Kafka
import Redis
import Telemetry
import TestSupport
import Testing

@testable import HalcyonImaging
@testable import HalcyonWorker

/// Lifetimes of results that are rendered from a source fetched some time ago and cached since.
@Suite(.limitedParallelism) struct StoreTests {
    /// Stores a result of a source of this age.
    /// - Returns: The lifetime of the result in Redis in milliseconds, or nil if it is not stored.
    func storedLifetime(age: Double, maxAge: Double = 0, cacheControl: String?) async throws -> Double? {
        let server = try await RedisServer.start()
        let client = RedisClient(try RedisEndpoint(server.url), settings: .patient())
        let store = StoreStage(
            results: ResultCache(client), persist: nil, options: ResultOptions(), log: .silent,
            metrics: StoreMetrics(Metrics()),
            errors: .silent)
        let message = #"{"source":"http://example.org/a","maxAge":\#(maxAge)}"#
        let record = ConsumedRecord(topic: "halcyon.jobs", partition: 0, offset: 0, value: Array(message.utf8))
        let work = try DecodeStage(reader: JobDecoder(), topics: Topics()).decode(record)
        let image = RenderedImage(
            body: [1, 2, 3], format: .png, size: PixelSize(width: 4, height: 3), frames: nil, sha256: "ab",
            blurhash: nil, dominantColor: nil, sourceSize: PixelSize(width: 4, height: 3))
        let facts = ResultMetadata(
            width: 4, height: 3, format: .png, bytes: 3, sha256: "ab",
            source: SourceMetadata(status: 200, etag: nil, bytes: 9, format: .png, width: 4, height: 3))
        let made = RenderedResult(
            key: work.keys[0], image: image,
            memory: ResultMemory(PrioritySemaphore(1), bytesPerPermit: 1 << 20).hold(image.body.count), facts: facts,
            headers: cacheControl.map { ["Cache-Control": $0] } ?? [:],
            completedAt: Timestamp.now.seconds - age, origin: .sourceCache, timings: Timings(), fence: 0, since: 0)
        let result = try await store.deliver([made], beside: [:], work)[work.keys[0]]
        let key = work.keys[0].description
        let fields = try await client.send("HMGET", .string(key), "expiresAt", "storedAt").array ?? []
        let moments = fields.compactMap { $0.string.flatMap(Double.init) }
        await client.close()
        await server.stop()
        #expect((result?.expiresAt == nil) == moments.isEmpty && (result?.inline != nil) == moments.isEmpty)
        return moments.isEmpty ? nil : moments[0] - moments[1].rounded(.down)
    }

    @Test func resultLivesForTheRemainingMaxAge() async throws {
        let lifetime = try await storedLifetime(age: 400, cacheControl: "max-age=3600")
        // Storing takes a moment.
        #expect((3_080_000...3_200_000).contains(lifetime ?? 0))
    }

    @Test func defaultLifetimeCountsFromTheFetch() async throws {
        let lifetime = try await storedLifetime(age: 86_000, cacheControl: nil)
        #expect((280_000...400_000).contains(lifetime ?? 0))
    }

    @Test(arguments: ["max-age=300", nil])
    func expiredLifetimeStoresNothing(cacheControl: String?) async throws {
        #expect(try await storedLifetime(age: 86_400, cacheControl: cacheControl) == nil)
    }

    @Test func maxAgeOfTheJobCountsFromTheStore() async throws {
        #expect(try await storedLifetime(age: 86_400, maxAge: 60, cacheControl: "max-age=300") == 60_000)
    }
}
