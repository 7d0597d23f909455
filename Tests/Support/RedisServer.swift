import Glibc
import Processes
import Threads

/// A private redis-server on a free port of 127.0.0.1; nothing of it is written to disk.
public struct RedisServer: Sendable {
    /// The port it listens on.
    public let port: UInt16
    /// The process.
    public let process: ChildProcess

    /// Starts the server and waits until it says that it is ready. `arguments` go to redis-server.
    ///
    /// A free port may be taken, by another test's connection even, before the server has it: then it tries another one, or
    /// the given one again.
    public static func start(port: UInt16? = nil, _ arguments: [String] = []) async throws -> RedisServer {
        for _ in 0..<50 {
            let port = port ?? LoopbackPort.free()
            var ends: [Int32] = [0, 0]
            // Not a pipe: only this is kept from other children in one step, so that its end is the server's end.
            let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
            precondition(socketpair(AF_UNIX, kind, 0, &ends) == 0, "no socket pair: errno \(errno)")
            let (log, logEnd) = (ends[0], ends[1])
            defer { close(log) }
            var options = ChildProcess.Options()
            options.output = .descriptor(logEnd)
            let started: Result<ChildProcess, ChildProcessError>
            do throws(ChildProcessError) {
                started = .success(
                    try await ChildProcess.start(
                        "redis-server",
                        ["--port", "\(port)", "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"] + arguments,
                        options: options))
            } catch { started = .failure(error) }
            close(logEnd)
            let process = try started.get()
            if await says("Ready to accept connections", log) { return RedisServer(port: port, process: process) }
            await process.stop()
            try await Task.sleep(for: .milliseconds(50))
        }
        throw NotInTime(description: "redis-server \(arguments) does not start")
    }

    /// Stops it and waits for its end.
    public func stop() async { await process.stop() }

    /// Whether `text` comes out of the socket before its end.
    private static func says(_ text: String, _ socket: Int32) async -> Bool {
        await withCheckedContinuation { continuation in
            _ = WorkThread(name: "redis-log", stackSize: 1 << 16) {
                var heard = ""
                var buffer = [UInt8](repeating: 0, count: 4096)
                while !heard.contains(text) {
                    let count = read(socket, &buffer, buffer.count)
                    if count <= 0 { return continuation.resume(returning: false) }
                    heard += String(decoding: buffer.prefix(count), as: UTF8.self)
                }
                continuation.resume(returning: true)
            }
        }
    }
}
