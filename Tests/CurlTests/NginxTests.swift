import Curl
import Subprocess
import TestSupport
import Testing

/// HTTP/2 over TLS, against a real server.
@Suite(.limitedParallelism) struct NginxTests {
    @Test func sharesOneConnectionOverHTTP2() async throws {
        let body = (0..<200_000).map { UInt8(truncatingIfNeeded: $0 &* 13) }
        try await withHTTP2(serving: body) { url, client in
            let connections = try await withThrowingTaskGroup(of: String?.self) { group in
                for _ in 0..<50 {
                    group.addTask {
                        let response = try await client.execute(.patient("\(url)/file"))
                        #expect(response.body == body && response.headers["x-protocol"] == "HTTP/2.0")
                        return response.headers["X-Connection"]
                    }
                }
                return try await group.reduce(into: Set<String?>()) { $0.insert($1) }
            }
            #expect(connections.count == 1)
        }
    }

    /// libcurl keeps a part of a finished transfer's handle while another stream is open on the same connection.
    @Test func runsSequentialRequestsBesideALongTransfer() async throws {
        try await withHTTP2(serving: [UInt8](repeating: 7, count: 200_000)) { url, client in
            let started = NumberRecorder()
            let long = Task {
                try await client.execute(.patient("\(url)/slow/file")) { started.record($0.received) }
            }
            try await until("the long transfer is in flight") { !started.all.isEmpty }
            for _ in 0..<5 {
                let response = try await client.execute(.patient("\(url)/file"))
                #expect(response.body.count == 200_000)
            }
            long.cancel()
            await expectFailure(.cancelled) { try await long.value }
            let after = try await client.execute(.patient("\(url)/file"))
            #expect(after.body.count == 200_000)
        }
    }

    /// nginx ends the stream of status 444 with RST_STREAM.
    @Test func streamResetIsAnInterruption() async throws {
        try await withHTTP2(serving: [7]) { url, client in
            let error = await #expect(throws: CurlError.self) {
                try await client.execute(.patient("\(url)/reset"))
            }
            #expect(error?.code == .interrupted && error?.isRetriable == true)
        }
    }

    /// Runs `body` with the URL of a server and a client that is limited to one connection. The server has one file,
    /// `/file`, which it sends slowly as `/slow/file`, and resets the stream of `/reset`.
    private func withHTTP2(serving file: [UInt8], _ body: (String, CurlClient) async throws -> Void) async throws {
        let certificate = try await SelfSignedCertificate.make()
        let folder = TemporaryFolder("http2")
        folder.write(file, to: "file")
        let port = LoopbackPort.reserve()
        let nginx = try await Nginx.start(
            serving: folder.path,
            """
            listen 127.0.0.1:\(port) ssl http2;
            ssl_certificate \(certificate.certificate);
            ssl_certificate_key \(certificate.key);
            add_header X-Protocol $server_protocol;
            add_header X-Connection $connection;
            location /slow/ { alias \(folder.path)/; limit_rate 1k; }
            location = /reset { return 444; }
            """)
        var settings = CurlSettings()
        settings.authorities = certificate.certificate
        settings.maxConnectionsPerHost = 1
        let client = CurlClient(settings)
        let result: Result<Void, any Error>
        do { result = .success(try await body("https://127.0.0.1:\(port)", client)) } catch { result = .failure(error) }
        await client.close()
        await nginx.stop()
        await folder.remove()
        await certificate.remove()
        try result.get()
    }
}
