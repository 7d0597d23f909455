import Concurrency
import HTTPServer
import HalcyonCluster
import Kafka
import Telemetry
import TestSupport

@testable import HalcyonGateway

/// A broker with an events topic, and feeds that follow it.
struct EventFixture: Sendable {
    let topics: Topics
    let brokers: String
    /// The embedded broker; nil for Apache Kafka.
    let mock: MockCluster?
    let producer: Producer
    let metrics = Metrics()

    private static let count = Lock(0)

    /// Runs `body` with the embedded broker or with this Apache Kafka, and stops the former.
    static func with(
        apache: ApacheKafka? = nil, partitions: Int = 3, _ body: (EventFixture) async throws -> Void
    ) async throws {
        let number = count.withLock { count in
            count += 1
            return count
        }
        let topics = Topics(prefix: "halcyon\(number).")
        let mock = apache == nil ? try MockCluster() : nil
        try await mock?.createTopics([topics.events], partitions: partitions)
        try await apache?.create([topics.events], partitions: partitions)
        let brokers = mock?.bootstrapServers ?? apache?.bootstrapServers ?? ""
        let fixture = EventFixture(
            topics: topics, brokers: brokers, mock: mock,
            producer: try Producer(properties: ["bootstrap.servers": brokers, "linger.ms": "0"]))
        let result: Result<Void, any Error>
        do { result = .success(try await body(fixture)) } catch { result = .failure(error) }
        await fixture.producer.close(flushingFor: .zero)
        await mock?.stop()
        try result.get()
    }

    var kafka: KafkaProperties { KafkaProperties(brokers: brokers, properties: MockCluster.fetchProperties) }

    /// Starts a feed. By default it keeps the events and the streams of a test, however slow the machine is.
    func start(_ change: (inout EventOptions) -> Void = { _ in }, metrics: Metrics? = nil) -> EventFeed {
        var options = EventOptions()
        (options.memory, options.slowClientTimeout) = (.seconds(3600), .seconds(600))
        change(&options)
        return EventFeed.start(
            options, topics: topics, properties: kafka.reader, log: .silent, metrics: metrics ?? self.metrics)
    }

    /// Runs `body` with a feed that is caught up, and closes it.
    func withFeed(
        _ change: (inout EventOptions) -> Void = { _ in }, _ body: (EventFeed) async throws -> Void
    ) async throws {
        let feed = start(change)
        let result: Result<Void, any Error>
        do {
            await feed.ready()
            result = .success(try await body(feed))
        } catch {
            result = .failure(error)
        }
        await feed.close()
        try result.get()
    }

    /// Runs `body` with a feed that is caught up and a server of its stream, and closes both.
    func withStream(
        _ change: (inout EventOptions) -> Void = { _ in },
        _ body: (EventFeed, HTTPServer) async throws -> Void
    ) async throws {
        try await withFeed(change) { feed in
            let server = try serve(feed)
            let result: Result<Void, any Error>
            do { result = .success(try await body(feed, server)) } catch { result = .failure(error) }
            feed.endStreams()
            await server.shutdown(gracePeriod: .seconds(5))
            try result.get()
        }
    }

    /// Starts a server of a feed's stream.
    func serve(_ feed: EventFeed) throws -> HTTPServer {
        let router = Router(
            routes: [.events(feed, StreamLimiter(feed.options.streams, feed.metrics))],
            authenticator: Authenticator(AccessOptions()), log: .silent, metrics: metrics)
        return try HTTPServer.start(on: "127.0.0.1", .patient, syncHandler: { router.reply(to: $0) })
    }

    /// Returns the JSON of an event.
    static func event(_ job: String, _ kind: String = "ready", source: String? = nil) -> String {
        let body =
            switch kind {
            case "ready": #","variants":[{"key":"k","width":1,"height":1,"format":"png","bytes":1,"sha256":"s"}]"#
            case "failed": #","code":"not_found","message":"gone""#
            default: ""
            }
        let subject = source.map { #""subject":"\#($0)","# } ?? ""
        return
            #"{"specversion":"1.0","id":"\#(job)-\#(kind)","type":"halcyon.image.\#(kind)",\#(subject)"data":{"job":{"id":"\#(job)"}\#(body)}}"#
    }

    /// Publishes an event.
    func publish(
        _ job: String, _ kind: String = "ready", source: String? = nil, partition: Int32? = nil
    ) async throws {
        try await producer.send(
            ProducerRecord(
                topic: topics.events, partition: partition, key: Array(job.utf8),
                value: Array(Self.event(job, kind, source: source).utf8)))
    }

    /// Publishes a record with any value.
    func publish(bytes: [UInt8], partition: Int32 = 0) async throws {
        try await producer.send(ProducerRecord(topic: topics.events, partition: partition, value: bytes))
    }
}
