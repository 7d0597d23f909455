import Subprocess
import TestSupport

/// The server of openssl (`s_server`).
struct TLSServer {
    let port: UInt16
    private let process: ChildProcess

    static func start(_ certificate: SelfSignedCertificate) async throws -> TLSServer {
        let port = LoopbackPort.reserve()
        let process = try await ChildProcess.start(
            "openssl",
            [
                "s_server", "-accept", "127.0.0.1:\(port)", "-cert", certificate.certificate,
                "-key", certificate.key, "-www", "-quiet",
            ])
        try await until("openssl answers or has failed") { LoopbackPort.answers(port) || !process.isRunning }
        guard process.isRunning else { throw ConditionTimeout(description: "openssl does not start") }
        return TLSServer(port: port, process: process)
    }

    func stop() async { await process.stop() }
}
