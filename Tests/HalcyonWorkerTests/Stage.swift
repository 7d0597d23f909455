import Foundation
import HalcyonCluster
import HalcyonSources
import HalcyonWorker
import Kafka
import Redis
import Telemetry
import TestSupport

/// A small cluster for one test: a mock broker, a redis-server or a cluster of them, and workers in this process.
final class Stage: Sendable {
    let topics = Topics()
    let broker: MockCluster
    let deployment: RedisDeployment
    /// The redis-server; of a cluster the first.
    var redis: RedisServer { deployment.servers[0] }
    private let endpoint: RedisEndpoint
    let producer: Producer
    let events: EventLog
    let client: RedisClient

    /// Runs `body` on a stage of its own and takes it down.
    static func with(
        redis kind: RedisDeployment.Kind = .server, redisArguments: [String] = [],
        _ body: (Stage) async throws -> Void
    ) async throws {
        let stage = try await Stage(kind, redisArguments)
        do {
            try await body(stage)
        } catch {
            await stage.close()
            throw error
        }
        await stage.close()
    }

    private init(_ kind: RedisDeployment.Kind, _ redisArguments: [String]) async throws {
        broker = try MockCluster()
        for topic in topics.all { try broker.createTopic(topic, partitions: 2) }
        deployment = try await RedisDeployment.start(kind, redisArguments)
        endpoint = try RedisEndpoint(deployment.url)
        producer = try Producer(properties: ["bootstrap.servers": broker.bootstrapServers, "linger.ms": "0"])
        client = RedisClient(endpoint)
        events = try await EventLog(
            topics, ["bootstrap.servers": broker.bootstrapServers, "fetch.wait.max.ms": "10"])
    }

    /// What a worker on this stage is told.
    var options: WorkerOptions {
        let kafka = KafkaProperties(
            brokers: broker.bootstrapServers, properties: ["fetch.wait.max.ms": "10", "session.timeout.ms": "6000"])
        var options = WorkerOptions(topics: topics, kafka: kafka, redis: endpoint)
        options.sources.policy = AddressPolicy(allow: ["127.0.0.0/8"])
        options.concurrency = 2
        return options
    }

    /// Runs `body` beside a worker, which is drained at the end.
    func withWorker(_ change: (inout WorkerOptions) -> Void = { _ in }, _ body: () async throws -> Void) async throws {
        var options = options
        change(&options)
        let worker = try await Worker.start(options, log: .silent, metrics: Metrics())
        do {
            await worker.ready()
            try await body()
        } catch {
            _ = await worker.drain(grace: .seconds(5))
            throw error
        }
        _ = await worker.drain(grace: .seconds(5))
    }

    /// Puts a message on the topic of the usual lane.
    func submit(_ message: String) async throws { try await submit(Array(message.utf8)) }

    func submit(_ message: [UInt8]) async throws {
        try await producer.send(ProducerRecord(topic: topics.jobs(.normal), value: message))
    }

    /// All dead letters so far.
    func deadLetters(atLeast count: Int) async throws -> [ConsumedRecord] {
        let reader = try await TopicReader.open(
            topics.dead, from: .beginning,
            properties: ["bootstrap.servers": broker.bootstrapServers, "fetch.wait.max.ms": "10"])
        var found: [ConsumedRecord] = []
        for try await record in reader {
            found.append(record)
            if found.count >= count { break }
        }
        await reader.close()
        return found
    }

    private func close() async {
        await events.close()
        await producer.close()
        await client.close()
        await broker.stop()
        await deployment.stop()
    }
}

/// The sample photographs that come with Halcyon.
enum Photograph {
    static let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../Samples")
        .standardized.path

    static func bytes(_ name: String = "rocket.jpg") throws -> [UInt8] {
        [UInt8](try Data(contentsOf: URL(filePath: "\(folder)/\(name)")))
    }
}

extension RawOrigin.Step {
    /// A response of 200 with these headers and this body, in pieces for a script.
    static func response(_ body: [UInt8], _ headers: [String] = [], status: String = "200 OK") -> [RawOrigin.Step] {
        let lines = ["HTTP/1.1 \(status)", "Content-Length: \(body.count)"] + headers
        return [.text(lines.joined(separator: "\r\n") + "\r\n\r\n"), .bytes(body)]
    }
}
