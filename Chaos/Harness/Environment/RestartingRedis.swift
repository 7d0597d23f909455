import Glibc
import TestSupport

/// A redis-server that can be killed and restarted on the same port, without its data.
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

    var isRunning: Bool { server?.process.isRunning ?? false }

    /// Kills the server with SIGKILL.
    func kill() async {
        guard let server else { return }
        server.process.send(SIGKILL)
        await server.process.exit()
        self.server = nil
    }

    /// Starts the server again without data.
    func restart() async throws { server = try await RedisServer.start(port: port) }

    /// Freezes the server (SIGSTOP) or resumes it (SIGCONT).
    func send(_ signal: Int32) { server?.process.send(signal) }

    /// Deletes all data.
    func flush() async throws { _ = try await server?.run("FLUSHALL") }

    func stop() async { await server?.stop() }
}
