import Measuring
import TestSupport

/// What the workers of both modes share.
final class Servers: Sendable {
    let kafka: ApacheKafka
    let redis: RedisServer
    let photographs: PhotographServer

    init(photographs: [[UInt8]]) async throws {
        self.photographs = try await PhotographServer(photographs)
        redis = try await RedisServer.start()
        kafka = try await ApacheKafka()
        try await kafka.start()
    }

    func remove() async {
        await photographs.remove()
        await redis.stop()
        await kafka.remove()
    }
}
