import HalcyonCluster
import Redis

extension Configuration {
    /// Runs `body` with the results in Redis, and ends the connection.
    /// - Throws: as ``withRedis(_:)``.
    func withResults<Value: Sendable>(_ body: (ResultTier) async throws -> Value) async throws -> Value {
        try await withRedis { try await body(ResultTier($0)) }
    }

    /// Runs `body` with Redis, and ends the connection.
    /// - Throws: ``ConfigurationError``, ``Trouble`` when Redis does not do what it is asked for, and what `body`
    ///   throws.
    func withRedis<Value: Sendable>(_ body: (RedisClient) async throws -> Value) async throws -> Value {
        try await redis().withClient(body)
    }
}

extension RedisEndpoint {
    /// Runs `body` with what is there, and ends the connection.
    /// - Throws: ``Trouble`` when Redis does not do what it is asked for, and what `body` throws.
    func withClient<Value: Sendable>(_ body: (RedisClient) async throws -> Value) async throws -> Value {
        let client = RedisClient(self)
        let result: Result<Value, any Error>
        do {
            result = .success(try await body(client))
        } catch let error as RedisError {
            let next = "is it running, and the address right (--redis)? `halcyon doctor` looks closer"
            result =
                error.code == .cancelled
                ? .failure(CancellationError()) : .failure(Trouble("Redis at \(self): \(error); \(next)"))
        } catch {
            result = .failure(error)
        }
        await client.close()
        return try result.get()
    }
}
