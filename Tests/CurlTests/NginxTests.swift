import Curl
import Processes
import TestSupport
import Testing

/// Against a real server, over TLS.
@Suite struct NginxTests {
    @Test func sharesOneConnectionOverHTTP2() async throws {
        let certificate = try await SelfSignedCertificate.make()
        let folder = TemporaryFolder("http2")
        let body = (0..<200_000).map { UInt8(truncatingIfNeeded: $0 &* 13) }
        folder.write(body, to: "file")
        let port = LoopbackPort.free()
        let nginx = try await Nginx.start(
            serving: folder.path,
            """
            listen 127.0.0.1:\(port) ssl http2;
            ssl_certificate \(certificate.certificate);
            ssl_certificate_key \(certificate.key);
            add_header X-Protocol $server_protocol;
            add_header X-Connection $connection;
            """)
        var settings = CurlSettings()
        settings.authorities = certificate.certificate
        settings.maxConnectionsPerHost = 1
        let client = CurlClient(settings)
        let connections = try await withThrowingTaskGroup(of: String?.self) { group in
            for _ in 0..<50 {
                group.addTask {
                    let response = try await client.perform(HTTPRequest(.get, "https://127.0.0.1:\(port)/file"))
                    #expect(response.body == body && response.headers["x-protocol"] == "HTTP/2.0")
                    return response.headers["X-Connection"]
                }
            }
            return try await group.reduce(into: Set<String?>()) { $0.insert($1) }
        }
        #expect(connections.count == 1)
        await client.close()
        await nginx.stop()
        await folder.remove()
        await certificate.remove()
    }
}
