import Concurrency
import HalcyonCluster
import JSON
import Kafka
import Subprocess
import TestSupport
import Vips

/// The servers of a run, one worker, and somebody who sends jobs and looks when they end.
final class BenchmarkFixture: Sendable {
    /// A job that has ended.
    struct Ended: Sendable {
        /// Which origin it was for.
        let origin: Int
        /// From the sending to the event.
        let seconds: Double
        let isReady: Bool
    }

    private let broker: MockCluster
    private let redis: RedisServer
    private let origins: [RawOrigin]
    private let worker: ChildProcess
    private let producer: Producer
    private let reader: TopicReader
    private let reading: Task<Void, any Error>
    private let ends = Lock<[String: (at: ContinuousClock.Instant, isReady: Bool)]>([:])

    init(executable: String, origins count: Int, slow: Int) async throws {
        let topics = Topics()
        let picture = try Image(color: [200, 100, 50], width: 300, height: 200).encoded(as: .jpeg)
        origins = (0..<count).map { number in RawOrigin(keepsLog: false) { _ in Self.script(number < slow, picture) } }
        redis = try await RedisServer.start()
        broker = try MockCluster()
        try await broker.createTopics(topics.all, partitions: 4)
        let servers = broker.bootstrapServers
        producer = try Producer(properties: ["bootstrap.servers": servers, "linger.ms": "0"])
        reader = try await TopicReader.open(
            topics.events, from: .end, properties: ["bootstrap.servers": servers, "fetch.wait.max.ms": "10"])
        let (reader, ends) = (reader, ends)
        reading = Task {
            for try await record in reader {
                let event = try JSON.parse(record.value ?? [], maximumSize: 1 << 20, maximumDepth: 64)
                let type = try event.member("type")?.string()
                guard type == "halcyon.image.ready" || type == "halcyon.image.failed",
                    let job = try event.member("data")?.member("job")?.member("id")?.string()
                else { continue }
                ends.withLock { $0[job] = (.now, type == "halcyon.image.ready") }
            }
        }
        var options = ChildProcess.Options()
        options.environment = [
            "HALCYON_KAFKA_BROKERS": servers, "HALCYON_REDIS_URL": "redis://127.0.0.1:\(redis.port)",
            "HALCYON_SOURCES_ALLOW": "127.0.0.0/8", "HALCYON_LOG_LEVEL": "error",
        ]
        options.errors = .inherited
        worker = try await ChildProcess.start(executable, ["worker"], options: options)
    }

    /// Sends jobs for these origins in turn, so many a second, and waits until those for the quick ones have ended.
    func run(_ origins: [Int], rate: Double, seconds: Int, tag: String) async throws -> [Ended] {
        var sent: [(id: String, origin: Int, at: ContinuousClock.Instant)] = []
        let start = ContinuousClock.now
        for number in 0..<Int(rate * Double(seconds)) {
            try await Task.sleep(until: start + .seconds(Double(number) / rate))
            let (id, origin) = ("\(tag)-\(number)", origins[number % origins.count])
            sent.append((id, origin, .now))
            let job = #"{"id":"\#(id)","source":"\#(self.origins[origin].url("/\(id).jpg"))","width":60,"height":40}"#
            try await producer.send(ProducerRecord(topic: Topics().jobs(.normal), value: Array(job.utf8)))
        }
        let ids = sent.map(\.id)
        try await until("all jobs have ended", within: .seconds(300)) { [ends] in
            ends.withLock { ends in ids.allSatisfy { ends[$0] != nil } }
        }
        return ends.withLock { ends in
            sent.map { job in
                Ended(
                    origin: job.origin, seconds: job.at.duration(to: ends[job.id]!.at) / .seconds(1),
                    isReady: ends[job.id]!.isReady)
            }
        }
    }

    func remove() async {
        await worker.stop()
        reading.cancel()
        await reader.close()
        await producer.close()
        await redis.stop()
        await broker.stop()
        for origin in origins { try? await origin.stop() }
    }

    /// A slow one sends another header each second, for as long as anybody listens.
    private static func script(_ isSlow: Bool, _ picture: [UInt8]) -> [RawOrigin.Step] {
        guard isSlow else {
            return [
                .pause(.milliseconds(15)),
                .text("HTTP/1.1 200 OK\r\nContent-Length: \(picture.count)\r\n\r\n"), .bytes(picture),
            ]
        }
        return [.text("HTTP/1.1 200 OK\r\n")]
            + (0..<60).flatMap { [RawOrigin.Step.pause(.seconds(1)), .text("X-\($0): y\r\n")] } + [.close]
    }
}
