import Curl
import Formats
import Foundation
import HTTPServer
import HalcyonCluster
import HalcyonModel
import HalcyonSources
import HalcyonWorker
import Kafka
import Redis
import Telemetry
import TestSupport

@testable import HalcyonGateway

/// A small cluster behind gateways: a broker, a redis-server and an origin; workers and gateways as a test wants them.
final class GatewayFixture: Sendable {
    let broker: MockCluster
    let redis: RedisServer
    let client = CurlClient()
    let topics = Topics()

    /// Runs `body` on a ground of its own and takes it down.
    static func with(_ body: (GatewayFixture) async throws -> Void) async throws {
        let fixture = try await GatewayFixture()
        let result: Result<Void, any Error>
        do { result = .success(try await body(fixture)) } catch { result = .failure(error) }
        await fixture.client.close()
        await fixture.redis.stop()
        await fixture.broker.stop()
        try result.get()
    }

    private init() async throws {
        broker = try MockCluster()
        for topic in topics.all { try broker.createTopic(topic, partitions: 2) }
        redis = try await RedisServer.start()
    }

    var kafka: KafkaProperties {
        KafkaProperties(
            brokers: broker.bootstrapServers, properties: ["fetch.wait.max.ms": "10", "session.timeout.ms": "30000"])
    }

    var endpoint: RedisEndpoint { RedisEndpoint(loopbackPort: redis.port) }

    /// Runs `body` beside a worker.
    func withWorker(
        _ change: (inout WorkerOptions) -> Void = { _ in }, _ body: () async throws -> Void
    ) async throws {
        var options = WorkerOptions(topics: topics, kafka: kafka, redis: endpoint)
        options.sources.policy = AddressPolicy(allow: ["127.0.0.0/8"])
        (options.sources.timeout, options.sources.stallTimeout) = (.seconds(600), .seconds(600))
        options.retries = .once
        change(&options)
        let worker = try await Worker.start(options, log: .silent, metrics: Metrics())
        await worker.ready()
        let result: Result<Void, any Error>
        do { result = .success(try await body()) } catch { result = .failure(error) }
        _ = await worker.shutdown(gracePeriod: .seconds(5))
        try result.get()
    }

    /// Runs `body` with a gateway, which it asks by what it is given.
    func withGateway(
        tracer: Tracer? = nil, _ change: (inout GatewayOptions) -> Void = { _ in },
        _ body: (Asking) async throws -> Void
    ) async throws {
        var options = GatewayOptions(topics: topics, kafka: kafka, redis: endpoint)
        options.limits = .patient
        change(&options)
        let gateway = try await Gateway.start(
            options, on: [("127.0.0.1", 0)], log: .silent, metrics: Metrics(), tracer: tracer)
        await gateway.ready()
        let result: Result<Void, any Error>
        do {
            result = .success(
                try await body(
                    Asking(client: client, port: gateway.ports[0], routes: gateway.routes.map(\.description))))
        } catch {
            result = .failure(error)
        }
        await gateway.shutdown(gracePeriod: .seconds(5))
        try result.get()
    }
}

/// Asks a gateway.
struct Asking: Sendable {
    let client: CurlClient
    let port: UInt16
    /// What can be asked for, probes aside.
    let routes: [String]

    func callAsFunction(
        _ method: HTTPRequest.Method, _ path: String, _ body: String = "", headers: HTTPFields = HTTPFields()
    ) async throws -> HTTPResponse {
        var request = HTTPRequest(method, "http://127.0.0.1:\(port)\(path)")
        request.headers = headers
        // How long an answer may take is not what is looked at.
        (request.timeout, request.stall) = (.seconds(600), nil)
        if method == .post, headers["Content-Type"] == nil { request.headers["Content-Type"] = "application/json" }
        request.body = Array(body.utf8)
        return try await client.execute(request)
    }
}

extension HTTPResponse {
    var text: String { String(decoding: body, as: UTF8.self) }

    /// The body as JSON; nothing for what is none.
    var json: [String: Any] { (try? JSONSerialization.jsonObject(with: Data(body))) as? [String: Any] ?? [:] }

    /// The body's lines, each as JSON.
    var lines: [[String: Any]] {
        body.split(separator: 10).map { (try? JSONSerialization.jsonObject(with: Data($0))) as? [String: Any] ?? [:] }
    }
}
