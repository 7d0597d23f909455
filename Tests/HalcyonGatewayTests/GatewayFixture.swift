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

/// A small cluster: an embedded broker and a redis-server, with the workers and gateways that a test starts.
final class GatewayFixture: Sendable {
    let broker: MockCluster
    let redis: RedisServer
    let client = CurlClient()
    let topics = Topics()

    /// Runs `body` with a new cluster and stops it.
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
        try await broker.createTopics(topics.all, partitions: 2)
        redis = try await RedisServer.start()
    }

    var kafka: KafkaProperties {
        KafkaProperties(
            brokers: broker.bootstrapServers, properties: ["session.timeout.ms": "12000"] + MockCluster.fetchProperties)
    }

    /// With a timeout for busy machines.
    var endpoint: RedisEndpoint { RedisEndpoint(loopbackPort: redis.port, timeout: .seconds(60)) }

    /// Returns the values of all records in a topic.
    func values(in topic: String) async throws -> [String] {
        let reader = try await TopicReader.open(
            topic, from: .beginning, properties: broker.consumerProperties, within: .patience)
        var values: [String] = []
        let count = reader.endOffsets.values.reduce(0, +)
        while values.count < count, let batch = try await reader.nextBatch() {
            values += batch.records.map { String(decoding: $0.value ?? [], as: UTF8.self) }
        }
        await reader.close()
        return values
    }

    /// Runs `body` with a worker and shuts it down.
    func withWorker(
        metrics: Metrics = Metrics(), _ change: (inout WorkerOptions) -> Void = { _ in },
        _ body: () async throws -> Void
    ) async throws {
        var options = WorkerOptions(topics: topics, kafka: kafka, redis: endpoint)
        options.sources.policy = AddressPolicy(allow: ["127.0.0.0/8"])
        (options.sources.timeout, options.sources.stallTimeout) = (.seconds(600), .seconds(600))
        options.sources.connectTimeout = .seconds(600)
        options.retries = .once
        change(&options)
        let worker = try await Worker.start(options, log: .silent, metrics: metrics)
        await worker.ready()
        let result: Result<Void, any Error>
        do { result = .success(try await body()) } catch { result = .failure(error) }
        _ = await worker.shutdown(gracePeriod: .seconds(5))
        try result.get()
    }

    /// Runs `body` with a client of a gateway, and shuts the gateway down.
    func withGateway(
        tracer: Tracer? = nil, _ change: (inout GatewayOptions) -> Void = { _ in },
        _ body: (GatewayClient) async throws -> Void
    ) async throws {
        var options = GatewayOptions(topics: topics, kafka: kafka, redis: endpoint)
        options.limits = .patient
        // Tests of waits and timeouts set their own. Each is shorter than the timeout of a request.
        (options.render.wait, options.jobs.longestWait) = (.seconds(500), .seconds(500))
        (options.jobs.sendTime, options.dead.time) = (.seconds(300), .seconds(300))
        (options.events.memory, options.events.slowClientTimeout) = (.seconds(600), .seconds(600))
        change(&options)
        let gateway = try await Gateway.start(
            options, on: [("127.0.0.1", 0)], log: .silent, metrics: Metrics(), tracer: tracer)
        await gateway.ready()
        let result: Result<Void, any Error>
        do {
            result = .success(
                try await body(
                    GatewayClient(httpClient: client, port: gateway.ports[0], routes: gateway.routes.map(\.description))
                ))
        } catch {
            result = .failure(error)
        }
        await gateway.shutdown(gracePeriod: .seconds(5))
        try result.get()
    }
}

/// A client of a gateway.
struct GatewayClient: Sendable {
    let httpClient: CurlClient
    let port: UInt16
    /// The routes of the gateway, without probes.
    let routes: [String]

    func send(
        _ method: HTTPRequest.Method, _ path: String, _ body: String = "", headers: HTTPFields = HTTPFields()
    ) async throws -> HTTPResponse {
        var request = HTTPRequest(method, "http://127.0.0.1:\(port)\(path)")
        request.headers = headers
        // Tests do not depend on the duration of requests.
        (request.timeout, request.connectTimeout, request.stall) = (.seconds(600), .seconds(600), nil)
        if method == .post, headers["Content-Type"] == nil { request.headers["Content-Type"] = "application/json" }
        request.body = Array(body.utf8)
        return try await httpClient.execute(request)
    }

    /// Sends a request, again while the answer is 503, such as when Kafka is late on a busy machine.
    func sendUntilAvailable(
        _ method: HTTPRequest.Method, _ path: String, _ body: String = "", headers: HTTPFields = HTTPFields()
    ) async throws -> HTTPResponse {
        try await firstValue("\(path) is available") { () async throws -> HTTPResponse? in
            let answer = try await send(method, path, body, headers: headers)
            return answer.status == 503 ? nil : answer
        }
    }
}

extension HTTPResponse {
    var text: String { String(decoding: body, as: UTF8.self) }

    /// The body as a JSON object; empty if it is not one.
    var json: [String: Any] { (try? JSONSerialization.jsonObject(with: Data(body))) as? [String: Any] ?? [:] }

    /// The lines of the body as JSON objects.
    var lines: [[String: Any]] {
        body.split(separator: 10).map { (try? JSONSerialization.jsonObject(with: Data($0))) as? [String: Any] ?? [:] }
    }
}
