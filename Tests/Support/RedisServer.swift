import Subprocess

/// A private redis-server on a free port of 127.0.0.1, without persistence.
public struct RedisServer: Sendable {
    /// The port that the server listens on.
    public let port: UInt16
    /// The process.
    public let process: ChildProcess
    /// The PEM file of the certificate authority of a server that accepts only TLS; nil for plain TCP.
    let authority: String?

    /// Starts the server and waits until it is ready.
    /// - Parameters:
    ///   - port: A reserved port; nil for a new one.
    ///   - arguments: Arguments for redis-server.
    ///   - certificate: The certificate of a server that accepts only TLS; nil for none.
    /// - Throws: `ChildProcessError`, and ``ConditionTimeout`` if it exits.
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
        guard let process else { throw ConditionTimeout(description: "redis-server \(arguments) failed to start") }
        return RedisServer(port: port, process: process, authority: certificate?.certificate)
    }

    /// The URL of a server without TLS, with a timeout of commands for busy machines. Tests of timeouts set their own.
    public var url: String { "redis://127.0.0.1:\(port)?timeout=60s" }

    /// Runs a command on the server with redis-cli and returns its output.
    public func run(_ command: String...) async throws -> String { try await run(command) }

    /// Runs a command on the server with redis-cli and returns its output.
    public func run(_ command: [String]) async throws -> String {
        try await RedisCommandLine.run(["-p", "\(port)"] + command, authority: authority)
    }

    /// Stops the server and waits for it to exit.
    public func stop() async { await process.stop() }
}
