import Subprocess
import TestSupport

/// openssl's own server.
struct TLSServer {
    let port: UInt16
    private let process: ChildProcess

    static func start(_ certificate: SelfSignedCertificate) async throws -> TLSServer {
        for _ in 0..<20 {
            let port = LoopbackPort.free()
            let process = try await ChildProcess.start(
                "openssl",
                [
                    "s_server", "-accept", "127.0.0.1:\(port)", "-cert", certificate.certificate,
                    "-key", certificate.key, "-www", "-quiet",
                ])
            try await until("openssl answers or has failed") { LoopbackPort.answers(port) || !process.isRunning }
            if process.isRunning { return TLSServer(port: port, process: process) }
        }
        throw NotInTime(description: "openssl does not start")
    }

    func stop() async { await process.stop() }
}
