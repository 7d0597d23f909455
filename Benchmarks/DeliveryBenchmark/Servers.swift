import TestSupport

/// What the workers of both modes share.
final class Servers: Sendable {
    let kafka: ApacheKafka
    let redis: RedisServer
    let origin: Nginx
    let photographs: Int
    private let folder: TemporaryFolder

    init(photographs: [[UInt8]]) async throws {
        self.photographs = photographs.count
        folder = TemporaryFolder("photographs")
        for (number, bytes) in photographs.enumerated() { _ = folder.write(bytes, to: "\(number).jpg") }
        origin = try await Nginx.start(serving: folder.path, "expires 1h;")
        redis = try await RedisServer.start()
        kafka = try await ApacheKafka()
        try await kafka.start()
    }

    func remove() async {
        await origin.stop()
        await redis.stop()
        await kafka.remove()
        await folder.remove()
    }
}
