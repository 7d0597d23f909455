import Subprocess

/// A self-signed certificate for 127.0.0.1, in temporary files.
public struct SelfSignedCertificate: Sendable {
    /// The PEM file of the certificate, which is also its certificate authority.
    public let certificate: String
    /// The PEM file of the private key.
    public let key: String
    private let folder: TemporaryFolder

    /// Creates a certificate with openssl.
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
        guard exit == .code(0) else {
            throw ConditionTimeout(description: "openssl failed to create a certificate: \(exit)")
        }
        return made
    }

    /// Deletes the files.
    public func remove() async { await folder.remove() }
}
