import Subprocess

/// A private redis-server on a free port of 127.0.0.1; nothing of it is written to disk.
public struct RedisServer: Sendable {
    /// The port it listens on.
    public let port: UInt16
    /// The process.
    public let process: ChildProcess
    /// The PEM file of the authority of its certificate, where it speaks TLS alone.
    let authority: String?

    /// Starts the server and waits until it says that it is ready. `arguments` go to redis-server.
    ///
    /// A free port may be taken, by another test's connection even, before the server has it: then it tries another one, or
    /// the given one again.
    public static func start(port: UInt16? = nil, _ arguments: [String] = []) async throws -> RedisServer {
        try await start(arguments) { port ?? LoopbackPort.free() }
    }

    /// The same, on the port that `choose` gives for each attempt, and with TLS alone where there is a certificate.
    static func start(
        _ arguments: [String], certificate: SelfSignedCertificate? = nil, on choose: () -> UInt16
    ) async throws -> RedisServer {
        for _ in 0..<50 {
            let port = choose()
            let listening =
                certificate.map {
                    [
                        "--port", "0", "--tls-port", "\(port)", "--tls-cert-file", $0.certificate, "--tls-key-file",
                        $0.key,
                        "--tls-ca-cert-file", $0.certificate, "--tls-auth-clients", "no",
                    ]
                } ?? ["--port", "\(port)"]
            let process = try await ChildProcess.start(
                "redis-server", listening + ["--bind", "127.0.0.1", "--save", "", "--appendonly", "no"] + arguments,
                readyWhenItSays: "Ready to accept connections")
            if let process { return RedisServer(port: port, process: process, authority: certificate?.certificate) }
            try await Task.sleep(for: .milliseconds(50))
        }
        throw NotInTime(description: "redis-server \(arguments) does not start")
    }

    /// What a command prints that redis-cli runs on the server.
    public func tell(_ command: String...) async throws -> String { try await tell(command) }

    /// What a command prints that redis-cli runs on the server.
    public func tell(_ command: [String]) async throws -> String {
        try await RedisCommandLine.run(["-p", "\(port)"] + command, authority: authority)
    }

    /// Stops it and waits for its end.
    public func stop() async { await process.stop() }
}
