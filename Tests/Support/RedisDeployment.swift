import Testing

/// The Redis deployment of a test: a single server, or a cluster of three masters. The kind is an argument of the test:
///
///     @Test(arguments: RedisDeployment.Kind.allCases) func storesResults(on kind: RedisDeployment.Kind) async throws
public final class RedisDeployment: Sendable {
    /// The kind of a deployment.
    public enum Kind: String, CaseIterable, Sendable, CustomTestStringConvertible {
        /// A single server.
        case server
        /// A cluster of three masters without replicas. When one of them fails, the others keep serving.
        case cluster

        /// The name of the kind.
        public var testDescription: String { rawValue }
    }

    /// The cluster; nil for a single server.
    public let cluster: RedisClusterServer?
    private let single: RedisServer?

    /// Starts the servers and passes `arguments` to each redis-server.
    public static func start(_ kind: Kind, _ arguments: [String] = []) async throws -> RedisDeployment {
        switch kind {
        case .server: RedisDeployment(try await RedisServer.start(arguments), nil)
        case .cluster: RedisDeployment(nil, try await RedisClusterServer.start(arguments))
        }
    }

    private init(_ single: RedisServer?, _ cluster: RedisClusterServer?) {
        self.single = single
        self.cluster = cluster
    }

    /// The value for the setting `redis.url`, with a timeout of commands for busy machines.
    public var url: String { cluster.map { "\($0.url)?timeout=60s" } ?? servers[0].url }

    /// All servers.
    public var servers: [RedisServer] { cluster?.nodes ?? [single].compactMap { $0 } }

    /// Runs a command on every server with redis-cli.
    public func runOnAll(_ command: String...) async throws {
        for server in servers { _ = try await server.run(command) }
    }

    /// Returns the number of keys on all servers.
    public func keyCount() async throws -> Int {
        var count = 0
        for server in servers { count += Int(try await server.run(["DBSIZE"]).prefix { $0.isNumber }) ?? 0 }
        return count
    }

    /// Stops all servers.
    public func stop() async {
        await single?.stop()
        await cluster?.stop()
    }
}
