import Formats
import HalcyonCluster
import HalcyonModel
import HalcyonSources
import Kafka
import Redis
import Telemetry
import TestSupport

@testable import HalcyonNotifications

/// A broker, a Redis server and a notifier for one test, and committed events.
struct NotificationFixture: Sendable {
    let topics: Topics
    let brokers: String
    let redis: RedisServer
    let producer: Producer
    let metrics = Metrics()
    private let session: Duration

    /// Runs `body` with servers of its own, and stops them.
    /// - Parameter session: The session timeout of notifiers. The default survives pauses of a busy machine. A notifier
    ///   that follows another waits for nearly as long.
    static func with(
        webhookDelays: [Duration] = [.seconds(3600)], partitions: Int = 2, session: Duration = .seconds(12),
        _ body: (NotificationFixture) async throws -> Void
    ) async throws {
        let topics = Topics(webhookDelays: webhookDelays)
        let broker = try MockCluster()
        try await broker.createTopics(topics.all, partitions: partitions)
        let fixture = try await NotificationFixture(
            topics: topics, brokers: broker.bootstrapServers, session: session)
        let result: Result<Void, any Error>
        do { result = .success(try await body(fixture)) } catch { result = .failure(error) }
        await fixture.close()
        await broker.stop()
        try result.get()
    }

    init(topics: Topics, brokers: String, session: Duration) async throws {
        self.topics = topics
        self.brokers = brokers
        self.session = session
        redis = try await RedisServer.start()
        producer = try Producer(properties: ["bootstrap.servers": brokers, "linger.ms": "0"])
    }

    func close() async {
        await producer.close()
        await redis.stop()
    }

    private var properties: [String: String] { ["bootstrap.servers": brokers] + MockCluster.fetchProperties }

    /// The options of notifiers: no webhook targets, and a short backoff.
    var options: NotifierOptions {
        let session = ["session.timeout.ms": "\(Int(session / .milliseconds(1)))"]
        var options = NotifierOptions(
            topics: topics,
            kafka: KafkaProperties(brokers: brokers, properties: session + MockCluster.fetchProperties),
            redis: RedisEndpoint(loopbackPort: redis.port, timeout: .seconds(60)))
        options.policy = AddressPolicy(allow: ["127.0.0.0/8"])
        options.webhooks.retries.base = 0.05
        // A busy machine must not turn a delivery into a retry.
        options.webhooks.timeout = .seconds(300)
        return options
    }

    /// Runs `body` with a notifier, which is drained at the end.
    /// - Parameter grace: The time to drain, which ends earlier if no notification waits.
    func withNotifier(
        _ change: (inout NotifierOptions) -> Void = { _ in }, log: Log = .silent, grace: Duration = .seconds(5),
        _ body: () async throws -> Void
    ) async throws {
        var options = options
        change(&options)
        let notifier = try await Notifier.start(options, log: log, metrics: metrics)
        let result: Result<Void, any Error>
        do {
            await notifier.ready()
            result = .success(try await body())
        } catch {
            result = .failure(error)
        }
        await notifier.shutdown(gracePeriod: grace)
        try result.get()
    }

    /// Returns an event in JSON.
    static func event(_ job: String, _ kind: String = "ready", data: String = "") -> String {
        #"{"specversion":"1.0","id":"halcyon.jobs-0-\#(job)-\#(kind)","type":"halcyon.image.\#(kind)","data":{"job":{"id":"\#(job)"}\#(data)}}"#
    }

    func record(
        _ job: String, _ kind: String = "ready", for webhook: String? = nil, data: String = "", timestamp: Int64? = nil
    ) -> ProducerRecord {
        ProducerRecord(
            topic: topics.events, key: Array(job.utf8), value: Array(Self.event(job, kind, data: data).utf8),
            headers: webhook.map { [RecordHeader("halcyon-webhook", $0)] } ?? [], timestamp: timestamp)
    }

    func publish(_ record: ProducerRecord) async throws { try await producer.send(record) }

    /// Returns the value of a counter for an outcome.
    func count(_ name: String, _ outcome: String) -> Int {
        Int(metrics.value(of: "halcyon_\(name)_total{outcome=\"\(outcome)\"}"))
    }

    /// Returns the dead letters once there are at least `count`.
    func deadLetters(_ count: Int) async throws -> [DeadLetter] {
        let reader = try await TopicReader.open(
            topics.dead, from: .beginning, properties: properties, within: .patience)
        var found: [DeadLetter] = []
        for try await record in reader {
            if let letter = DeadLetter(record) { found.append(letter) }
            if found.count >= count { break }
        }
        await reader.close()
        return found
    }
}

/// Two secrets of webhooks.
enum Secrets {
    static let one = WebhookSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")!
    static let other = WebhookSecret("whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")!
}

extension RawOrigin.Request {
    /// Returns the value of a header, whose name is given in lowercase.
    func header(_ name: String) -> String? {
        head.split(separator: "\r\n").first { $0.lowercased().hasPrefix("\(name): ") }
            .map { String($0.dropFirst(name.count + 2)) }
    }

    /// The id of the event.
    var event: String? { header("webhook-id") }
}
