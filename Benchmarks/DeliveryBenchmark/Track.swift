import Concurrency
import HalcyonCluster
import JSON
import Kafka
import Measuring
import Subprocess
import TestSupport

/// One worker with topics of its own, somebody who sends it jobs, and a reader of committed events.
final class Track: Sendable {
    private let servers: Servers
    private let topics: Topics
    private let worker: ChildProcess
    private let producer: Producer
    private let reader: TopicReader
    private let reading: Task<Void, any Error>
    private let ended = Lock((count: 0, failed: 0))

    init(_ servers: Servers, executable: String, mode: String) async throws {
        self.servers = servers
        let topics = Topics(prefix: "\(mode).")
        self.topics = topics
        let client = ["bootstrap.servers": servers.kafka.bootstrapServers]
        try await servers.kafka.create(topics.all, partitions: 8)
        producer = try Producer(
            properties: client.merging(["queue.buffering.max.messages": "1000000", "linger.ms": "1"]) { $1 })
        reader = try await TopicReader.open(
            topics.events, from: .end, properties: client.merging(["isolation.level": "read_committed"]) { $1 })
        let (reader, ended) = (reader, ended)
        reading = Task {
            for try await record in reader {
                let type = try JSON.parse(record.value ?? [], maximumSize: 1 << 20, maximumDepth: 64).member("type")?
                    .string()
                ended.withLock { ended in
                    if !["halcyon.image.started", "halcyon.image.progress"].contains(type) { ended.count += 1 }
                    if type == "halcyon.image.failed" { ended.failed += 1 }
                }
            }
        }
        var options = ChildProcess.Options()
        options.environment = [
            "HALCYON_KAFKA_BROKERS": servers.kafka.bootstrapServers, "HALCYON_KAFKA_PREFIX": topics.prefix,
            "HALCYON_KAFKA_GROUP": mode, "HALCYON_REDIS_URL": "redis://127.0.0.1:\(servers.redis.port)",
            "HALCYON_SOURCES_ALLOW": "127.0.0.0/8", "HALCYON_LOG_LEVEL": "warning", "HALCYON_DELIVERY": mode,
        ]
        options.errors = .inherited
        worker = try await ChildProcess.start(executable, ["worker"], options: options)
    }

    /// A job for one of the photographs; what differs in its tag is another source.
    func job(_ number: Int, _ tag: String, id: String) -> [UInt8] {
        let source = servers.photographs.url(number % servers.photographs.count, "\(topics.prefix)\(tag)")
        return Array(
            #"{"id":"\#(id)","source":"\#(source)","width":400,"height":300,"format":"jpeg","quality":80}"#.utf8)
    }

    /// Jobs a second, from the first that is sent to the last event that is seen.
    func throughput(of jobs: [[UInt8]]) async throws -> Double {
        let wanted = ended.withLock { $0.count } + jobs.count
        let time = try await ContinuousClock().measure {
            try await withThrowingTaskGroup(of: Void.self) { [producer, topics] group in
                for job in jobs {
                    group.addTask { try await producer.send(ProducerRecord(topic: topics.jobs(.normal), value: job)) }
                }
                try await group.waitForAll()
            }
            try await seen(wanted, every: .milliseconds(2))
        }
        return Double(jobs.count) / (time / .seconds(1))
    }

    /// Seconds from the sending of a job to its event.
    func latency(of job: [UInt8]) async throws -> Double {
        let wanted = ended.withLock { $0.count } + 1
        let time = try await ContinuousClock().measure {
            try await producer.send(ProducerRecord(topic: topics.jobs(.normal), value: job))
            try await seen(wanted, every: .milliseconds(1))
        }
        return time / .seconds(1)
    }

    private func seen(_ wanted: Int, every: Duration) async throws {
        let end = ContinuousClock.now + .seconds(300)
        while ended.withLock({ $0.count }) < wanted {
            guard .now < end else { throw ConditionTimeout(description: "not all jobs end") }
            try await Task.sleep(for: every)
        }
        guard ended.withLock({ $0.failed }) == 0 else { throw ConditionTimeout(description: "some jobs failed") }
    }

    func close() async {
        await worker.stop()
        reading.cancel()
        await reader.close()
        await producer.close()
    }
}
