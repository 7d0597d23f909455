import TestSupport
import Testing

@testable import Redis

/// Runs `body` with a private cluster and a client of it, and stops both.
func withCluster(
    masters: Int = 3, replicas: Int = 0, settings: RedisSettings = .patient(),
    onStateChange: @escaping @Sendable (RedisState) -> Void = { _ in },
    _ body: (RedisClusterServer, RedisClient) async throws -> Void
) async throws {
    let cluster = try await RedisClusterServer.start(masters: masters, replicas: replicas)
    let client = RedisClient(try RedisEndpoint(cluster.url), settings: settings, onStateChange: onStateChange)
    let result: Result<Void, any Error>
    do { result = .success(try await body(cluster, client)) } catch { result = .failure(error) }
    await client.close()
    await cluster.stop()
    try result.get()
}
