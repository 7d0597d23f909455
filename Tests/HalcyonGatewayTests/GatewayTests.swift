import HalcyonCluster
import Redis
import Telemetry
import TestSupport
import Testing

@testable import HalcyonGateway

/// A whole gateway.
@Suite(.limitedParallelism) struct GatewayTests {
    /// Options with addresses where no server listens. The gateway waits for Kafka and Redis.
    private static var options: GatewayOptions {
        var options = GatewayOptions(
            kafka: KafkaProperties(brokers: "127.0.0.1:1"), redis: RedisEndpoint(loopbackPort: 1))
        options.limits = .patient
        return options
    }

    @Test func listensPubliclyOnlyWithKeysOrOpenAccess() async throws {
        for host in ["0.0.0.0", "::"] {
            let error = await #expect(throws: OpenGatewayError.self) {
                _ = try await Gateway.start(
                    Self.options, on: [("127.0.0.1", 0), (host, 0)], log: .silent, metrics: Metrics())
            }
            #expect(error?.description.contains("\(host) could do everything") == true)
        }
        for change: @Sendable (inout AccessOptions) -> Void in [
            { $0.isOpen = true }, { $0.keys = [APIKey(name: "k", secret: "k", scopes: [.read])] },
        ] {
            var options = Self.options
            change(&options.access)
            let gateway = try await Gateway.start(options, on: [("0.0.0.0", 0)], log: .silent, metrics: Metrics())
            #expect(gateway.ports.count == 1)
            await gateway.shutdown(gracePeriod: .zero)
        }
    }

    @Test func serverLevelErrorsHaveSecurityHeaders() async throws {
        let gateway = try await Gateway.start(Self.options, on: [("127.0.0.1", 0)], log: .silent, metrics: Metrics())
        for (request, status) in [
            ("GET / HTTP/1.1\r\nHost: localhost\r\nHost: b\r\n\r\n", 400),
            ("BREW / HTTP/1.1\r\nHost: localhost\r\n\r\n", 501),
            ("TRACE /v1/jobs HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
            ("QUERY / HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
        ] {
            let client = try RawClient(gateway.ports[0])
            try await client.send(request)
            let answer = try await client.answer()
            #expect(answer.status == status && answer.headers["content-type"] == "application/problem+json")
            #expect(answer.headers["x-content-type-options"] == "nosniff")
            #expect(answer.headers["content-security-policy"] == "default-src 'none'; sandbox; frame-ancestors 'none'")
        }
        await gateway.shutdown(gracePeriod: .zero)
    }

    /// So that pages can read their status and `Retry-After`.
    @Test func serverLevelErrorsHaveCORSHeadersIfAllOriginsAreAllowed() async throws {
        let cases: [(origin: String, allowed: String?)] = [("*", "*"), ("https://a.example", nil)]
        for (origin, allowed) in cases {
            var options = Self.options
            options.access.origins = [origin]
            let gateway = try await Gateway.start(options, on: [("127.0.0.1", 0)], log: .silent, metrics: Metrics())
            let client = try RawClient(gateway.ports[0])
            try await client.send("BREW / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            let answer = try await client.answer()
            #expect(answer.status == 501 && answer.headers["access-control-allow-origin"] == allowed)
            let exposed = answer.headers["access-control-expose-headers"]?.contains("Retry-After") ?? false
            #expect(exposed == (allowed != nil))
            await gateway.shutdown(gracePeriod: .zero)
        }
    }
}
