import Concurrency
import HalcyonCluster
import HalcyonResults
import Redis
import Telemetry

extension Configuration {
    /// Runs `body` with the result cache in Redis and closes the connection afterwards.
    /// - Throws: the errors of ``withRedis(_:)``.
    func withResults<Value: Sendable>(_ body: (ResultCache) async throws -> Value) async throws -> Value {
        try await withRedis { try await body(ResultCache($0)) }
    }

    /// Runs `body` with a Redis client and closes the connection afterwards.
    /// - Throws: ``ConfigurationError``, ``CommandError`` if a Redis command fails, and the errors of `body`.
    func withRedis<Value: Sendable>(_ body: (RedisClient) async throws -> Value) async throws -> Value {
        try await redis().withClient(body)
    }

    /// Runs `body` with the result store, or nil if none is configured, and closes it afterwards.
    /// - Throws: ``CommandError`` if the store cannot be used, and the errors of `body`.
    func withResultStore<Value: Sendable>(_ body: (ResultStore?) async throws -> Value) async throws -> Value {
        guard let resultStore else { return try await body(nil) }
        let writer = logWriter()
        defer { writer.shutdown() }
        let log = Log(level: .warning, sink: writer)
        do {
            let store = try await blocking { try ResultStore.open(resultStore, log: log, metrics: Metrics()) }
            store.start()
            return try await closing({ await store.close(within: .seconds(5)) }) { try await body(store) }
        } catch let error as StorageError {
            throw CommandError(
                "the result store at \(resultStore.location): \(error); is results.store right? "
                    + "Run `halcyon doctor` for details")
        }
    }
}

extension RedisEndpoint {
    /// Runs `body` with a client of this endpoint and closes the connection afterwards.
    /// - Throws: ``CommandError`` if a Redis command fails, and the errors of `body`.
    func withClient<Value: Sendable>(_ body: (RedisClient) async throws -> Value) async throws -> Value {
        let client = RedisClient(self)
        do {
            return try await closing({ await client.close() }) { try await body(client) }
        } catch let error as RedisError {
            if error.code == .cancelled { throw CancellationError() }
            throw CommandError(
                "Redis at \(self): \(error); is it running, and is the address right (--redis)? "
                    + "Run `halcyon doctor` for details")
        }
    }
}
