import Concurrency
import Curl
import Formats
import Foundation
import HalcyonCluster
import JSON
import Kafka
import Measuring
import Subprocess
import TestSupport

/// A result store of a run.
enum Store: Sendable {
    case none
    case folder(String)
    case s3(S3Server)
    /// A bucket in memory, whose server takes no time.
    case memory(RawOrigin)
    /// A server that accepts every request and never answers.
    case hanging(RawOrigin)

    /// The settings of workers and commands that use it.
    var settings: [String: String] {
        switch self {
        case .none: [:]
        case .folder(let path): ["HALCYON_RESULTS_STORE": "file://\(path)"]
        case .s3(let server): Self.bucket(port: server.port)
        case .memory(let origin), .hanging(let origin): Self.bucket(port: origin.port)
        }
    }

    private static func bucket(port: UInt16) -> [String: String] {
        [
            "HALCYON_RESULTS_STORE": "s3://results/made", "HALCYON_RESULTS_S3_ENDPOINT": "http://127.0.0.1:\(port)",
            "HALCYON_RESULTS_S3_REGION": S3Server.region, "HALCYON_RESULTS_S3_ACCESSKEY": S3Server.accessKey,
            "HALCYON_RESULTS_S3_SECRETKEY": S3Server.secretKey,
        ]
    }

    /// An empty store in a folder or a bucket.
    /// - Parameter root: where a folder is created.
    static func named(_ name: String, in root: String) async throws -> Store {
        switch name {
        case "folder": .folder("\(root)/halcyon-store-\(UInt32.random(in: .min ... .max))")
        case "s3": .s3(try await S3Server.start(["results/other": []]))
        case "memory": .memory(memory())
        default: .none
        }
    }

    /// Answers at once and on persistent connections, unlike the server of the tests.
    private static func memory() -> RawOrigin {
        let objects = Lock<[String: (head: String, body: [UInt8])]>([:])
        return RawOrigin(keepsLog: false) { request in
            if request.path.contains("list-type") { return RawOrigin.answer("200 OK", [], "<a/>") }
            if request.head.hasPrefix("PUT ") {
                objects.withLock { $0[request.path] = (request.record, request.body) }
                return RawOrigin.answer()
            }
            guard let object = objects.withLock({ $0[request.path] }) else {
                return RawOrigin.answer("404 Not Found", [], "<Error><Code>NoSuchKey</Code></Error>")
            }
            let head =
                "HTTP/1.1 200 OK\r\nContent-Length: \(object.body.count)\r\nx-amz-meta-halcyon: \(object.head)\r\n\r\n"
            // In one piece, because two would meet a delayed acknowledgment.
            return [.bytes(Array(head.utf8) + object.body)]
        }
    }

    func remove() async throws {
        switch self {
        case .none: break
        case .folder(let path): try FileManager.default.removeItem(atPath: path)
        case .s3(let server): await server.stop()
        case .memory(let origin), .hanging(let origin): try await origin.stop()
        }
    }
}

extension RawOrigin.Request {
    /// The record of an object that is written.
    fileprivate var record: String {
        let name = "x-amz-meta-halcyon: "
        let line = head.split(whereSeparator: \.isNewline).first { $0.lowercased().hasPrefix(name) }
        return line.map { String($0.dropFirst(name.count)) } ?? ""
    }
}

/// A worker with a Redis and a store of its own on a shared broker, and somebody who sends it jobs and waits for their
/// events.
final class Cluster: Sendable {
    /// A job that has ended.
    struct Ended: Sendable {
        /// Which of the jobs it was.
        let number: Int
        /// From the sending to the event.
        let seconds: Double
        /// Where its result came from (`data.origin`); nil if it failed.
        let origin: String?
    }

    let store: Store
    let redis: RedisServer
    let worker: ChildProcess
    private let prefix: String
    private let brokers: String
    private let executable: String
    private let metricsPort: UInt16
    private let client = CurlClient()
    private let producer: Producer
    private let reader: TopicReader
    private let reading: Task<Void, any Error>
    private let run = Lock<Run?>(nil)

    /// Jobs in flight.
    private final class Run: Sendable {
        let window: PrioritySemaphore
        let sent = Lock<[String: (number: Int, at: ContinuousClock.Instant)]>([:])
        let ended = Lock<[Ended]>([])

        init(atOnce: Int) { window = PrioritySemaphore(atOnce) }

        func end(_ id: String, _ origin: String?) {
            guard let (number, at) = sent.withLock({ $0.removeValue(forKey: id) }) else { return }
            let seconds = at.duration(to: .now) / .seconds(1)
            ended.withLock { $0.append(Ended(number: number, seconds: seconds, origin: origin)) }
            window.release()
        }
    }

    /// The topics of a cluster, which the broker has to have.
    static func topics(_ name: String) -> [String] { Topics(prefix: "\(name).").all }

    /// - Parameters:
    ///   - name: the prefix of its topics.
    ///   - settings: further environment variables of the worker.
    init(
        _ name: String, executable: String, brokers: String, store: Store, redis arguments: [String] = [],
        _ settings: [String: String] = [:]
    ) async throws {
        (self.store, self.executable, self.brokers) = (store, executable, brokers)
        prefix = "\(name)."
        redis = try await RedisServer.start(arguments)
        metricsPort = LoopbackPort.reserve()
        producer = try Producer(
            properties: ["bootstrap.servers": brokers, "linger.ms": "0", "queue.buffering.max.messages": "1000000"])
        reader = try await TopicReader.open(
            Topics(prefix: prefix).events, from: .end,
            properties: ["bootstrap.servers": brokers, "fetch.wait.max.ms": "10"])
        let (reader, run) = (reader, run)
        reading = Task {
            for try await record in reader {
                let event = try JSON.parse(record.value ?? [], maximumSize: 1 << 20, maximumDepth: 64)
                let type = try event.member("type")?.string()
                guard type == "halcyon.image.ready" || type == "halcyon.image.failed",
                    let data = event.member("data"), let id = try data.member("job")?.member("id")?.string()
                else { continue }
                let origin = type == "halcyon.image.ready" ? try data.member("origin")?.string() : nil
                run.withLock { $0 }?.end(id, origin)
            }
        }
        let all = store.settings.merging(settings) { $1 }.merging([
            "HALCYON_HTTP_LISTEN": "127.0.0.1:\(metricsPort)", "HALCYON_LOG_LEVEL": "error",
            "HALCYON_SOURCES_ALLOW": "127.0.0.0/8",
        ]) { $1 }
        worker = try await WorkerProcess.start(
            executable: executable, brokers: brokers, redisPort: redis.port, prefix: prefix, all)
        let port = metricsPort
        try await until("the worker is ready") { try await RawClient(port).get("/readyz").status == 200 }
    }

    /// Sends jobs with ids of their own, so many at once, and returns when all have ended.
    /// - Parameter job: the fields of a job beside its id.
    func end(_ numbers: [Int], atOnce: Int, _ job: @Sendable (Int) -> String) async throws -> [Ended] {
        let run = Run(atOnce: atOnce)
        self.run.withLock { $0 = run }
        let (topic, tag) = (Topics(prefix: prefix).jobs(.normal), String(UInt32.random(in: .min ... .max), radix: 36))
        try await withThrowingDiscardingTaskGroup { [producer] group in
            for (place, number) in numbers.enumerated() {
                try await run.window.acquire()
                let id = "\(tag)-\(place)"
                run.sent.withLock { $0[id] = (number, .now) }
                let value = Array(#"{"id":"\#(id)",\#(job(number))}"#.utf8)
                group.addTask { try await producer.send(ProducerRecord(topic: topic, value: value)) }
            }
        }
        try await until("all jobs end", within: .seconds(600)) { run.ended.withLock { $0.count } == numbers.count }
        return run.ended.withLock { $0 }
    }

    /// Seconds of the worker's CPU for each of these jobs, including what it does in the background for them.
    /// - Parameter writes: whether they are results that are written to the store.
    func cost(of numbers: [Int], writes: Bool = false, _ job: @Sendable (Int) -> String) async throws -> Double {
        let written = try await writes ? self.written() : 0
        let before = processorTime(of: worker.pid)
        guard try await end(numbers, atOnce: 64, job).allSatisfy({ $0.origin != nil }) else {
            throw ConditionTimeout(description: "some jobs failed")
        }
        if writes {
            // Each poll costs CPU time of the worker, so there are few.
            let wanted = if case .none = store { 0 } else { written + numbers.count }
            repeat { try await Task.sleep(for: .seconds(1)) } while try await self.written() < wanted
        }
        return (processorTime(of: worker.pid) - before) / Double(numbers.count)
    }

    /// How many results the worker has written to the store.
    func written() async throws -> Int { Int(try await metric("halcyon_result_store_written_total")) }

    /// The value of a metric of the worker without labels; 0 if it has none.
    func metric(_ name: String) async throws -> Double {
        let response = try await client.execute(HTTPRequest(.get, "http://127.0.0.1:\(metricsPort)/metrics"))
        let line = String(decoding: response.body, as: UTF8.self).split(separator: "\n").first {
            $0.hasPrefix("\(name) ")
        }
        return line.flatMap { Double($0.dropFirst(name.utf8.count + 1)) } ?? 0
    }

    /// Runs a command of the cluster.
    func command(_ arguments: String...) async throws -> String {
        let settings = store.settings.merging([
            "HALCYON_KAFKA_BROKERS": brokers, "HALCYON_KAFKA_PREFIX": prefix,
            "HALCYON_REDIS_URL": "redis://127.0.0.1:\(redis.port)",
        ]) { $1 }
        let assignments = settings.map { "\($0.key)=\($0.value)" }
        return try await ProgramOutput.of("/usr/bin/env", assignments + [executable] + arguments)
    }

    /// Ends all of it, also the store.
    func remove() async throws {
        await worker.stop()
        reading.cancel()
        await reader.close()
        await producer.close()
        await client.close()
        await redis.stop()
        try await store.remove()
    }
}

/// Runs `body` with clusters of these names on one broker, and removes everything.
func withClusters(
    _ names: [String], _ start: (_ name: String, _ brokers: String) async throws -> Cluster,
    _ body: ([Cluster], _ broker: String) async throws -> Void
) async throws {
    let broker = try await RunBroker.start(names.flatMap(Cluster.topics))
    var clusters: [Cluster] = []
    var failure: (any Error)?
    do {
        for name in names { clusters.append(try await start(name, broker.bootstrapServers)) }
        try await body(clusters, broker.name)
    } catch {
        failure = error
    }
    for cluster in clusters { try await cluster.remove() }
    await broker.remove()
    if let failure { throw failure }
}
