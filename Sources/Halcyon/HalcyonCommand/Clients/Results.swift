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
        do {
            return try await closing({ await client.close() }) { try await body(client) }
        } catch let error as RedisError {
            if error.code == .cancelled { throw CancellationError() }
            throw Trouble(
                "Redis at \(self): \(error); is it running, and the address right (--redis)? `halcyon doctor` looks closer"
            )
        }
    }
}
