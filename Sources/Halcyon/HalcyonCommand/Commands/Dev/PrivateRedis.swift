import Processes

/// A redis-server of this process's own: in memory, on loopback, gone when this process is, however it ends.
struct PrivateRedis: Sendable {
    let port: UInt16
    let process: ChildProcess

    /// Starts it and waits until it says that it is ready.
    /// - Throws: ``Trouble`` when there is no redis-server, or it does not come up.
    static func start() async throws -> PrivateRedis {
        guard findExecutable("redis-server") != nil else {
            throw Trouble("no redis-server in PATH; `make deps` installs it (Debian: apt-get install redis-server)")
        }
        // A port that was free may be taken a moment later: then the server ends, and another port is tried.
        for _ in 0..<10 {
            let port = LoopbackPort.free()
            let process = try await ChildProcess.start(
                "redis-server",
                [
                    "--port", "\(port)", "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", "/",
                    "--maxmemory", "512mb", "--maxmemory-policy", "volatile-ttl",
                ], readyWhenItSays: "Ready to accept connections")
            if let process { return PrivateRedis(port: port, process: process) }
        }
        throw Trouble("redis-server ends as soon as it is started; run it by hand to see why")
    }
}
