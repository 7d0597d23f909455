import Subprocess

/// A certificate that signed itself, good for 127.0.0.1 alone, in files of its own.
public struct SelfSignedCertificate: Sendable {
    /// The PEM file of the certificate, which is its own authority.
    public let certificate: String
    /// The PEM file of its key.
    public let key: String
    private let folder: TemporaryFolder

    /// Has openssl make one.
    public static func make() async throws -> SelfSignedCertificate {
        let folder = TemporaryFolder("certificate")
        let made = SelfSignedCertificate(
            certificate: "\(folder.path)/crt", key: "\(folder.path)/key", folder: folder)
        let exit = try await ChildProcess.start(
            "openssl",
            [
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                "-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", made.key,
                "-out", made.certificate,
            ]
        ).exit()
        guard exit == .code(0) else { throw NotInTime(description: "openssl made no certificate: \(exit)") }
        return made
    }

    /// Deletes the files.
    public func remove() async { await folder.remove() }
}
