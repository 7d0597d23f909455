import HalcyonCluster
import HalcyonCoordination
import HalcyonModel
import Redis
import TestSupport

/// A result cache on a Redis server or Redis Cluster of its own.
enum ResultCacheFixture {
    static let metadata = metadata(bytes: 3)

    static func metadata(bytes: Int, width: Int = 4, height: Int = 3, frames: Int? = nil) -> ResultMetadata {
        ResultMetadata(
            width: width, height: height, format: .png, bytes: bytes, sha256: "ab", frames: frames,
            source: SourceMetadata(status: 200, etag: "\"e\"", bytes: 9, format: .jpeg, width: 40, height: 30))
    }

    static func with(
        _ kind: RedisDeployment.Kind = .server, budget: Budget = Budget(),
        _ body: (ResultCache, RedisClient, RedisDeployment) async throws -> Void
    ) async throws {
        let redis = try await RedisDeployment.start(kind)
        let client = RedisClient(try RedisEndpoint(redis.url), settings: .patient())
        let cache = ResultCache(client, budget: budget)
        let result: Result<Void, any Error>
        do { result = .success(try await body(cache, client, redis)) } catch { result = .failure(error) }
        await cache.close()
        await client.close()
        await redis.stop()
        try result.get()
    }
}

extension RedisValue {
    /// The number in a string reply.
    var number: Double? { string.flatMap(Double.init) }
}

extension RedisClient {
    /// The number of commands that the server has processed, excluding this one.
    func processedCommands() async throws -> Int {
        let text = try await send("INFO", "stats").string ?? ""
        let line = text.split(whereSeparator: \.isNewline).first { $0.hasPrefix("total_commands_processed:") }
        return Int(line?.split(separator: ":").last ?? "") ?? -1
    }
}
