import Foundation
import HalcyonModel
import HalcyonSources
import HalcyonWorker
import Kafka
import Redis
import Telemetry
import TestSupport

@testable import HalcyonCluster

/// A small cluster for one test: a broker, a redis-server or a cluster of them, and workers in this process.
final class WorkerFixture: Sendable {
    let topics: Topics
    let broker: TestBroker
    private let partitions: Int
    let deployment: RedisDeployment
    /// The redis-server, or the first one of a cluster.
    var redis: RedisServer { deployment.servers[0] }
    private let endpoint: RedisEndpoint
    let producer: Producer
    let events: EventLog
    let client: RedisClient

    /// Runs `body` with a new cluster and stops it afterwards.
    static func with(
        broker: TestBroker.Kind = .mock, redis kind: RedisDeployment.Kind = .server, redisArguments: [String] = [],
        partitions: Int = 2, topics: Topics = Topics(), _ body: (WorkerFixture) async throws -> Void
    ) async throws {
        let cluster = try await WorkerFixture(TestBroker.make(broker), kind, redisArguments, partitions, topics)
        do {
            try await body(cluster)
        } catch {
            await cluster.close()
            throw error
        }
        await cluster.close()
    }

    private init(
        _ broker: TestBroker, _ kind: RedisDeployment.Kind, _ redisArguments: [String], _ partitions: Int,
        _ topics: Topics
    ) async throws {
        self.topics = topics
        self.broker = broker
        self.partitions = partitions
        try await broker.create(topics.all, partitions: partitions)
        deployment = try await RedisDeployment.start(kind, redisArguments)
        endpoint = try RedisEndpoint(deployment.url)
        producer = try Producer(properties: ["bootstrap.servers": broker.bootstrapServers, "linger.ms": "0"])
        // Commands fail soon after the server was stopped.
        client = RedisClient(endpoint, settings: .patient(outageGrace: .milliseconds(500)))
        events = try await EventLog(topics, broker.consumerProperties)
    }

    /// Returns the keys of results and sources, without those of leases, waiters, fencing tokens, result
    /// indexes and workers.
    func storedKeys() async throws -> [String] {
        let keys = try await client.send("KEYS", "halcyon:*").array?.compactMap(\.string) ?? []
        let auxiliary = ["}:fences", "}:results", "}:lease:", "}:waiters:", ":{workers}"]
        return keys.filter { key in !auxiliary.contains { key.contains($0) } }
    }

    /// The options of workers of this cluster.
    var options: WorkerOptions {
        let kafka = KafkaProperties(
            brokers: broker.bootstrapServers, properties: ["session.timeout.ms": "12000"] + MockCluster.fetchProperties)
        var options = WorkerOptions(topics: topics, kafka: kafka, redis: endpoint)
        options.presetRestoration = .zero
        // Tests that share a broker have groups of their own.
        if topics.prefix != Topics().prefix { options.group = WorkerProcess.group(prefix: topics.prefix) }
        options.sources.policy = AddressPolicy(allow: ["127.0.0.0/8"])
        // Origins hang on purpose. Tests of time limits set their own.
        (options.sources.timeout, options.sources.stallTimeout) = (.seconds(600), .seconds(600))
        // Pauses of a busy machine must not cost leases, nor the last commit of a partition.
        options.sources.connectTimeout = .seconds(600)
        (options.leases.duration, options.consumer.commitTimeout) = (.seconds(60), .seconds(60))
        options.concurrency = 2
        // The number of progress events depends on time. Tests of them set an interval.
        options.progressInterval = .zero
        // Most tests of failures expect them after the first attempt.
        options.retries = .once
        return options
    }

    /// Runs `body` beside a worker, which is drained at the end.
    func withWorker(
        log: Log = .silent, metrics: Metrics = Metrics(), tracer: Tracer? = nil,
        _ change: (inout WorkerOptions) -> Void = { _ in },
        _ body: () async throws -> Void
    ) async throws {
        var options = options
        change(&options)
        let worker = try await Worker.start(options, log: log, metrics: metrics, tracer: tracer)
        do {
            await worker.ready()
            try await body()
        } catch {
            _ = await worker.shutdown(gracePeriod: .seconds(5))
            throw error
        }
        _ = await worker.shutdown(gracePeriod: .seconds(5))
    }

    /// Runs `body` beside several workers, which are drained at the end.
    /// - Parameter metrics: The metrics of each worker; nil if the test needs none.
    func withWorkers(
        _ count: Int, metrics: [Metrics]? = nil, tracer: Tracer? = nil,
        _ change: (inout WorkerOptions) -> Void = { _ in },
        _ body: ([Worker]) async throws -> Void
    ) async throws {
        var options = options
        change(&options)
        let metrics = metrics ?? (0..<count).map { _ in Metrics() }
        // Workers that join a group of the mock broker within its first 3 s share one rebalance. A later one takes nearly
        // the session timeout.
        let workers = try await withThrowingTaskGroup(of: (Int, Worker).self) { [options] group in
            for (number, metrics) in metrics.enumerated() {
                group.addTask {
                    (number, try await Worker.start(options, log: .silent, metrics: metrics, tracer: tracer))
                }
            }
            return try await group.reduce(into: [:]) { $0[$1.0] = $1.1 }.sorted { $0.key < $1.key }.map(\.value)
        }
        let result: Result<Void, any Error>
        do {
            try await waitForAssignment(metrics)
            result = .success(try await body(workers))
        } catch {
            result = .failure(error)
        }
        await withTaskGroup(of: Void.self) { group in
            for worker in workers { group.addTask { _ = await worker.shutdown(gracePeriod: .seconds(5)) } }
        }
        try result.get()
    }

    /// Waits until each worker has partitions, and each partition a worker.
    ///
    /// One assignment for each worker is not enough: on a busy machine the mock broker ends a rebalance without a
    /// member that is late, assigns its partitions to the others, and revokes them half a minute later, rejecting their
    /// commits. Jobs that ended meanwhile are processed twice, as at-least-once delivery allows, and a test that counts
    /// would count them.
    private func waitForAssignment(_ metrics: [Metrics]) async throws {
        let all = Double(partitions * topics.taken.count)
        try await until("the group has settled", within: .seconds(300)) {
            let shares = metrics.map { $0.value(of: "halcyon_partitions") }
            return shares.allSatisfy { $0 > 0 } && shares.reduce(0, +) == all
        }
    }

    /// Sends a message to the topic of a lane.
    /// - Parameter traceparent: The trace context of the message.
    func submit(_ message: String, _ lane: Lane = .normal, traceparent: String? = nil) async throws {
        let headers = traceparent.map { [RecordHeader("traceparent", Array($0.utf8))] } ?? []
        try await producer.send(
            ProducerRecord(topic: topics.jobs(lane), value: Array(message.utf8), headers: headers))
    }

    func submit(_ message: [UInt8], _ lane: Lane = .normal) async throws {
        try await producer.send(ProducerRecord(topic: topics.jobs(lane), value: message))
    }

    /// Publishes a control message to all workers.
    func publish(_ message: ControlMessage) async throws {
        try await ControlPublisher(producer, topics: topics).publish(message)
    }

    /// Waits until there are this many dead letters and returns them.
    func deadLetters(atLeast count: Int) async throws -> [ConsumedRecord] {
        let reader = try await TopicReader.open(
            topics.dead, from: .beginning, properties: broker.consumerProperties, within: .patience)
        var found: [ConsumedRecord] = []
        for try await record in reader {
            found.append(record)
            if found.count >= count { break }
        }
        await reader.close()
        return found
    }

    /// Returns the number of records in the topic of dead letters.
    func deadLetterCount() async throws -> Int64 {
        let reader = try await TopicReader.open(
            topics.dead, from: .end, properties: ["bootstrap.servers": broker.bootstrapServers],
            within: .patience)
        let count = reader.endOffsets.values.reduce(0, +)
        await reader.close()
        return count
    }

    private func close() async {
        await events.close()
        await producer.close()
        await client.close()
        await broker.stop()
        await deployment.stop()
    }
}
