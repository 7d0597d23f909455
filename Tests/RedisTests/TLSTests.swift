import Processes
import TestSupport
import Testing

@testable import Redis

/// `rediss://`, where hiredis has it.
@Suite(.takesTurns) struct TLSTests {
    @Test(
        .disabled(if: Connection.hasTLS, "this hiredis has TLS"),
        arguments: ["rediss://host", "rediss+cluster://host", "rediss+sentinel://host/s"])
    func saysThatThisBuildHasNoTLS(address: String) {
        #expect { try RedisEndpoint(address) } throws: {
            guard let error = $0 as? RedisError, error.code == .badEndpoint else { return false }
            return ["hiredis_ssl", "libhiredis-dev", "https://github.com/redis/hiredis"].allSatisfy(error.message.contains)
        }
    }

    @Test(.enabled(if: Connection.hasTLS, "this hiredis has no TLS"))
    func trustsKnownAuthoritiesAndRightNamesAlone() async throws {
        let certificate = try await SelfSignedCertificate.make()
        let port = LoopbackPort.free()
        let server = try await RedisServer.start([
            "--tls-port", "\(port)", "--tls-cert-file", certificate.certificate, "--tls-key-file", certificate.key,
            "--tls-auth-clients", "no",
        ])
        var trusting = impatient
        trusting.authorities = certificate.certificate

        let friend = RedisClient(try RedisEndpoint("rediss://127.0.0.1:\(port)"), settings: trusting)
        let body = [UInt8](repeating: 7, count: 1 << 20)
        #expect(try await friend.send("SET", "a", .bytes(body)) == .status("OK"))
        #expect(try await friend.send("GET", "a") == .bytes(body))
        await friend.close()

        for (host, settings) in [("127.0.0.1", impatient), ("localhost", trusting)] {
            let log = StateLog()
            let stranger = RedisClient(
                try RedisEndpoint("rediss://\(host):\(port)"), settings: settings, onStateChange: log.note)
            await expectFailure(.unavailable) { try await stranger.send("PING") }
            guard case .lost(let error) = log.states.first else { throw RedisError(.protocolError, "\(log.states)") }
            // It was the certificate, and nothing before it.
            #expect(error.message.contains("certificate"), "\(error)")
            await stranger.close()
        }
        await server.stop()
        await certificate.remove()
    }
}
