import Glibc
import TestSupport

/// A redis-server that comes and goes on one port, and forgets everything each time.
actor RestartingRedis {
    nonisolated let port: UInt16
    private var server: RedisServer?

    static func start() async throws -> RestartingRedis {
        RestartingRedis(try await RedisServer.start())
    }

    private init(_ server: RedisServer) {
        port = server.port
        self.server = server
    }

    /// Ends it at once.
    func kill() async {
        guard let server else { return }
        server.process.send(SIGKILL)
        await server.process.exit()
        self.server = nil
    }

    /// Starts it again, with nothing in it.
    func restart() async throws { server = try await RedisServer.start(port: port) }

    /// Has it stand still (SIGSTOP), or go on (SIGCONT).
    func send(_ signal: Int32) { server?.process.send(signal) }

    /// Has it forget everything.
    func flush() async throws { _ = try await server?.tell("FLUSHALL") }

    func stop() async { await server?.stop() }
}
