import Testing

/// What a test runs on that has to do with Redis: one server, or a cluster of three masters. Take it as an argument of the test:
///
///     @Test(arguments: RedisDeployment.Kind.allCases) func keepsIt(on kind: RedisDeployment.Kind) async throws
public final class RedisDeployment: Sendable {
    /// Which of them.
    public enum Kind: String, CaseIterable, Sendable, CustomTestStringConvertible {
        /// One server.
        case server
        /// A cluster of three masters without replicas, which go on when one of them is gone.
        case cluster

        /// Its name.
        public var testDescription: String { rawValue }
    }

    /// The cluster; nil where it is one server.
    public let cluster: RedisClusterServer?
    private let single: RedisServer?

    /// Starts the server or the servers. `arguments` go to each redis-server.
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

    /// The address, as it is set for `redis.url`.
    public var url: String { cluster?.url ?? "redis://127.0.0.1:\(servers[0].port)" }

    /// All servers.
    public var servers: [RedisServer] { cluster?.nodes ?? [single].compactMap { $0 } }

    /// Has redis-cli tell every server.
    public func tellAll(_ command: String...) async throws {
        for server in servers { _ = try await server.tell(command) }
    }

    /// How many keys there are.
    public func keyCount() async throws -> Int {
        var count = 0
        for server in servers { count += Int(try await server.tell(["DBSIZE"]).prefix { $0.isNumber }) ?? 0 }
        return count
    }

    /// Stops all servers.
    public func stop() async {
        await single?.stop()
        await cluster?.stop()
    }
}
