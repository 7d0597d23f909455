import Subprocess

/// A private redis-server on a free port of 127.0.0.1; nothing of it is written to disk.
public struct RedisServer: Sendable {
    /// The port it listens on.
    public let port: UInt16
    /// The process.
    public let process: ChildProcess
    /// The PEM file of the authority of its certificate, where it speaks TLS alone.
    let authority: String?

    /// Starts the server and waits until it is ready.
    /// - Parameters:
    ///   - port: A reserved port; nil for a new one.
    ///   - arguments: Arguments for redis-server.
    ///   - certificate: The certificate of a server that accepts only TLS; nil for none.
    /// - Throws: `ChildProcessError`, and ``NotInTime`` if it exits.
    public static func start(
        port: UInt16? = nil, _ arguments: [String] = [], certificate: SelfSignedCertificate? = nil
    ) async throws -> RedisServer {
        let port = port ?? LoopbackPort.reserve()
        let listening =
            certificate.map {
                [
                    "--port", "0", "--tls-port", "\(port)", "--tls-cert-file", $0.certificate, "--tls-key-file", $0.key,
                    "--tls-ca-cert-file", $0.certificate, "--tls-auth-clients", "no",
                ]
            } ?? ["--port", "\(port)"]
        let process = try await ChildProcess.start(
            "redis-server", listening + ["--bind", "127.0.0.1", "--save", "", "--appendonly", "no"] + arguments,
            readyWhenItSays: "Ready to accept connections")
        guard let process else { throw NotInTime(description: "redis-server \(arguments) does not start") }
        return RedisServer(port: port, process: process, authority: certificate?.certificate)
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
