import Glibc
import Processes
import TestSupport

/// openssl's own server with a certificate that it signed itself, good for 127.0.0.1.
struct TLSServer {
    let port: UInt16
    /// The PEM file, which is its own authority.
    let certificate: String
    private let process: ChildProcess
    private let key: String

    static func start() async throws -> TLSServer {
        let base = "/tmp/curl-door-\(getpid())-\(UInt32.random(in: 0 ... .max))"
        let (certificate, key) = ("\(base).crt", "\(base).key")
        let made = try await ChildProcess.start(
            "openssl",
            [
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                "-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate,
            ]
        ).exit()
        guard made == .code(0) else { throw NotInTime(description: "openssl made no certificate: \(made)") }
        for _ in 0..<20 {
            let port = LoopbackPort.free()
            let process = try await ChildProcess.start(
                "openssl",
                ["s_server", "-accept", "127.0.0.1:\(port)", "-cert", certificate, "-key", key, "-www", "-quiet"])
            try await until("openssl answers or has failed") { LoopbackPort.answers(port) || !process.isRunning }
            if process.isRunning { return TLSServer(port: port, certificate: certificate, process: process, key: key) }
        }
        throw NotInTime(description: "openssl does not start")
    }

    func stop() async {
        await process.stop()
        unlink(certificate)
        unlink(key)
    }
}
