import Glibc
import Subprocess
import TestSupport
import Testing

@testable import Redis

/// `rediss://`, if hiredis supports it.
@Suite(.limitedParallelism) struct TLSTests {
    @Test(
        .disabled(if: Connection.hasTLS, "this hiredis has TLS"),
        arguments: ["rediss://host", "rediss+cluster://host", "rediss+sentinel://host/s"])
    func explainsMissingTLSSupport(address: String) {
        #expect { try RedisEndpoint(address) } throws: {
            guard let error = $0 as? RedisError, error.code == .badEndpoint else { return false }
            return ["hiredis_ssl", "libhiredis-dev", "https://github.com/redis/hiredis"].allSatisfy(
                error.message.contains)
        }
    }

    @Test(.enabled(if: Connection.hasTLS, "this hiredis has no TLS"))
    func trustsOnlyKnownAuthoritiesAndMatchingNames() async throws {
        let certificate = try await SelfSignedCertificate.make()
        let port = LoopbackPort.reserve()
        let server = try await RedisServer.start([
            "--tls-port", "\(port)", "--tls-cert-file", certificate.certificate, "--tls-key-file", certificate.key,
            "--tls-auth-clients", "no",
        ])
        var trusting = quickReconnects
        trusting.authorities = certificate.certificate

        let trusted = RedisClient(try RedisEndpoint("rediss://127.0.0.1:\(port)"), settings: trusting)
        let body = [UInt8](repeating: 7, count: 1 << 20)
        #expect(try await trusted.send("SET", "a", .bytes(body)) == .status("OK"))
        #expect(try await trusted.send("GET", "a") == .bytes(body))
        await trusted.close()

        for (host, settings) in [("127.0.0.1", quickReconnects), ("localhost", trusting)] {
            let error = try await refusal(by: RedisEndpoint("rediss://\(host):\(port)"), settings: settings)
            // The certificate is the cause, and nothing before it.
            #expect(error.message.contains("certificate"), "\(error)")
        }
        await server.stop()
        await certificate.remove()
    }

    @Test(.enabled(if: Connection.hasTLS, "this hiredis has no TLS"))
    func reportsAnUnreadableFileOfAuthorities() async throws {
        var settings = quickReconnects
        settings.authorities = "/nonexistent/authorities.pem"
        let error = try await refusal(by: RedisEndpoint("rediss://127.0.0.1:1"), settings: settings)
        #expect(error.message.contains("/nonexistent/authorities.pem"), "\(error)")
    }

    /// An untrusted certificate fails the connection to the sentinel, before any primary is named.
    @Test(.enabled(if: Connection.hasTLS, "this hiredis has no TLS"))
    func sentinelsAndTheirPrimariesUseTLS() async throws {
        let certificate = try await SelfSignedCertificate.make()
        let sentinels = try await RedisSentinels.start(password: "p", sentinelPassword: "s", certificate: certificate)
        let address = "\(sentinels.hosts)/\(RedisSentinels.service)?sentinel-password=s"
        let endpoint = try RedisEndpoint("rediss+sentinel://:p@\(address)")
        var trusting = quickReconnects
        trusting.authorities = certificate.certificate
        let client = RedisClient(endpoint, settings: trusting)
        #expect(try await client.send("SET", "a", "one") == .status("OK"))
        #expect(try await client.masters() == [.tcp(host: "127.0.0.1", port: sentinels.servers[0].port)])
        let subscriber = RedisSubscriber(endpoint, settings: trusting)
        var messages = try await subscriber.subscribe("news").makeAsyncIterator()
        _ = try await client.send("PUBLISH", "news", "x")
        #expect(await messages.next()?.payload == [120])
        await subscriber.close()

        let error = try await refusal(by: endpoint)
        #expect(error.message.contains("certificate"), "\(error)")

        // Without TLS no connection succeeds.
        let plain = RedisClient(try RedisEndpoint("redis+sentinel://:p@\(address)"), settings: refusedConnections)
        await expectFailure(.unavailable) { try await plain.send("PING") }
        await plain.close()

        sentinels.servers[0].process.send(SIGKILL)
        try await until("the replica is promoted") { try await client.send("SET", "b", "two") == .status("OK") }
        #expect(try await client.send("GET", "a").string == "one")
        #expect(try await client.masters() == [.tcp(host: "127.0.0.1", port: sentinels.servers[1].port)])
        await client.close()
        await sentinels.stop()
        await certificate.remove()
    }

    @Test(.enabled(if: Connection.hasTLS, "this hiredis has no TLS"))
    func clusterUsesTLSAtEveryNode() async throws {
        let certificate = try await SelfSignedCertificate.make()
        let cluster = try await RedisClusterServer.start(certificate: certificate)
        var trusting = RedisSettings.patient()
        trusting.authorities = certificate.certificate
        let client = RedisClient(try RedisEndpoint(cluster.url), settings: trusting)
        for number in 0..<100 { #expect(try await client.send("SET", "k\(number)", .integer(number)) == .status("OK")) }
        let numbers = try await client.pipeline((0..<100).map { ["GET", "k\($0)"] }).map(\.integer)
        #expect(numbers == Array(0..<100))
        let subscriber = RedisSubscriber(try RedisEndpoint(cluster.url), settings: trusting)
        var messages = try await subscriber.subscribe("news").makeAsyncIterator()
        _ = try await client.send("PUBLISH", "news", "x")
        #expect(await messages.next()?.payload == [120])
        await subscriber.close()
        await client.close()

        let error = try await refusal(by: RedisEndpoint(cluster.url))
        #expect(error.message.contains("certificate"), "\(error)")
        await cluster.stop()
        await certificate.remove()
    }
}
