import Processes

/// A private redis-server on a free port of 127.0.0.1; nothing of it is written to disk.
public struct RedisServer: Sendable {
    /// The port it listens on.
    public let port: UInt16
    /// The process.
    public let process: ChildProcess

    /// Starts the server and waits until it answers. `arguments` go to redis-server.
    public static func start(port: UInt16 = LoopbackPort.free(), _ arguments: [String] = []) async throws -> RedisServer
    {
        let process = try await ChildProcess.start(
            "redis-server",
            ["--port", "\(port)", "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"] + arguments)
        try await until("redis-server answers on \(port)") { LoopbackPort.answers(port) }
        return RedisServer(port: port, process: process)
    }

    /// Stops it and waits for its end.
    public func stop() async { await process.stop() }
}
