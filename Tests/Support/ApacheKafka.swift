import Concurrency
import Foundation
import Glibc
import Kafka
import Subprocess

/// A single Apache Kafka broker on free ports of 127.0.0.1. The controller runs in the broker or in a separate process.
///
/// KAFKA_HOME names the distribution. Suites that need Apache Kafka are skipped when the variable is not set:
/// `.enabled(if: ApacheKafka.isAvailable)`.
public final class ApacheKafka: Sendable {
    /// The value of KAFKA_HOME; nil if it is empty or not set.
    public static let home = getenv("KAFKA_HOME").map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 }

    /// True if KAFKA_HOME is set. Otherwise the first access prints one line, so that skipped tests are not mistaken
    /// for passed ones.
    public static let isAvailable: Bool = {
        if home == nil { print("SKIPPED: tests against Apache Kafka, because KAFKA_HOME is not set") }
        return home != nil
    }()

    /// The port that clients connect to.
    public let port: UInt16
    private let data: TemporaryFolder
    private let broker: KafkaServerProcess
    /// The separate controller; nil if the broker is its own controller.
    private let controller: KafkaServerProcess?
    private let controllerPort: UInt16
    private let lastKill = Lock<ContinuousClock.Instant?>(nil)

    /// The session timeout of a broker that is killed, after which its controller fences it. With Kafka's default of
    /// 9 s, a restarted broker would wait for its own old session to expire.
    private static let session = Duration.seconds(2)

    /// A further listener of the broker. The broker advertises another port for it, on which a proxy forwards
    /// connections.
    public struct Listener: Sendable {
        let port: UInt16
        let advertised: UInt16

        /// Creates a listener from the port that it binds and the port that it advertises.
        public init(port: UInt16, advertised: UInt16) {
            self.port = port
            self.advertised = advertised
        }
    }

    /// Creates an empty broker without starting it. Topics are not created automatically.
    /// - Parameters:
    ///   - properties: Lines for server.properties, appended to those of this type.
    ///   - listeners: Further listeners.
    ///   - hasOwnController: True to run the controller in a separate process, as in production. A killed broker that
    ///     is its own controller considers itself the leader after a restart, then dead, then the leader again. If it
    ///     is slow, it mixes up two loads of `__consumer_offsets` and loses or invents committed offsets (seen with
    ///     4.1.1).
    ///   - isKilled: True if ``kill()`` will be called. A broker with a separate controller may always be killed.
    ///   - onLine: A callback for each logged line, called on a thread of its own.
    /// - Throws: ``ApacheKafkaError`` if KAFKA_HOME is not set or its tools fail.
    public init(
        port: UInt16 = LoopbackPort.reserve(), properties: [String] = [], listeners: [Listener] = [],
        hasOwnController: Bool = false, isKilled: Bool = false, onLine: @escaping @Sendable (String) -> Void = { _ in }
    ) async throws {
        self.port = port
        controllerPort = LoopbackPort.reserve()
        data = TemporaryFolder("kafka")
        let bound = listeners.enumerated().map { "PROXIED\($0)://127.0.0.1:\($1.port)," }.joined()
        let advertised = listeners.enumerated().map { "PROXIED\($0)://127.0.0.1:\($1.advertised)," }.joined()
        let protocols = listeners.indices.map { "PROXIED\($0):PLAINTEXT," }.joined()
        let control = "CONTROLLER://127.0.0.1:\(controllerPort)"
        // A broker that is not killed must not lose its session because the machine is busy.
        let session = hasOwnController || isKilled ? Self.session : .seconds(600)
        let common = [
            "controller.quorum.voters=\(hasOwnController ? 2 : 1)@127.0.0.1:\(controllerPort)",
            "controller.listener.names=CONTROLLER",
            "listener.security.protocol.map=\(protocols)PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "broker.session.timeout.ms=\(Int(session / .milliseconds(1)))", "broker.heartbeat.interval.ms=400",
        ]
        let lines =
            common + [
                "process.roles=broker\(hasOwnController ? "" : ",controller")", "node.id=1",
                "listeners=\(bound)PLAINTEXT://127.0.0.1:\(port)\(hasOwnController ? "" : ",\(control)")",
                "advertised.listeners=\(advertised)PLAINTEXT://127.0.0.1:\(port)",
                "auto.create.topics.enable=false", "offsets.topic.replication.factor=1",
                "offsets.topic.num.partitions=4", "transaction.state.log.replication.factor=1",
                "transaction.state.log.min.isr=1", "transaction.state.log.num.partitions=4",
                "share.coordinator.state.topic.replication.factor=1", "group.initial.rebalance.delay.ms=0",
                // The default buffer of the log cleaner is 128 MB in one allocation, half of the heap configured here.
                "log.cleaner.dedupe.buffer.size=4194304",
            ] + properties
        do {
            broker = try await KafkaServerProcess("broker", in: data, lines, onLine: onLine)
            controller =
                hasOwnController
                ? try await KafkaServerProcess(
                    "controller", in: data, common + ["process.roles=controller", "node.id=2", "listeners=\(control)"],
                    onLine: onLine) : nil
        } catch {
            await data.remove()
            throw error
        }
    }

    /// Starts the controller and the broker, or only the broker after ``kill()``, and waits until it serves clients.
    public func start() async throws {
        if let last = lastKill.withLock({ $0 }) {
            // The controller must have detected the crash.
            if controller != nil { try await Task.sleep(until: last + Self.session * 2) }
        } else {
            try await controller?.start { [controllerPort] in await blocking { LoopbackPort.answers(controllerPort) } }
        }
        try await broker.start { [port] in await blocking { KafkaProbe.brokerCount(port: port) > 0 } }
    }

    /// The value for `bootstrap.servers`: `127.0.0.1:PORT`.
    public var bootstrapServers: String { "127.0.0.1:\(port)" }

    /// Creates topics.
    public func create(_ topics: [String], partitions: Int) async throws {
        let admin = try Admin(properties: ["bootstrap.servers": bootstrapServers])
        let topics = topics.map { NewTopic($0, partitions: partitions, replication: 1) }
        _ = try await admin.create(topics, within: .patience)
        await admin.close()
    }

    /// Changes the access control list of a topic. The broker needs an authorizer (`authorizer.class.name`).
    /// - Parameter change: Arguments of Kafka's AclCommand.
    /// - Throws: ``ApacheKafkaError``.
    public func acl(_ change: [String], _ topic: String) async throws {
        let exit = try await ChildProcess.start(
            KafkaServerProcess.tool("kafka-run-class.sh"),
            ["org.apache.kafka.tools.AclCommand", "--bootstrap-server", bootstrapServers, "--topic", topic] + change
        ).exit()
        guard exit == .code(0) else { throw ApacheKafkaError("AclCommand failed: \(exit)") }
    }

    /// The members of a consumer group by the partitions that they have been assigned.
    /// - Returns: The `client.id` of the owner of each partition.
    /// - Throws: ``ApacheKafkaError``.
    public func owners(of topic: String, in group: String) async throws -> [Int: String] {
        let described = try await ChildProcess.run(
            KafkaServerProcess.tool("kafka-consumer-groups.sh"),
            ["--bootstrap-server", bootstrapServers, "--describe", "--group", group], timeLimit: .patience,
            outputLimit: 1 << 20)
        guard described.end == .exit(.code(0)) else {
            throw ApacheKafkaError("kafka-consumer-groups.sh failed: \(described.errors)")
        }
        // GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID
        var owners: [Int: String] = [:]
        for line in String(decoding: described.output, as: UTF8.self).split(separator: "\n") {
            let columns = line.split(separator: " ")
            guard columns.count == 9, columns[1] == topic, let partition = Int(columns[2]) else { continue }
            owners[partition] = String(columns[8])
        }
        return owners
    }

    /// True if the broker's process runs.
    public var isRunning: Bool { broker.isRunning }

    /// Kills the broker, as a crash does. Acknowledged records are still there after ``start()``.
    public func kill() async {
        lastKill.withLock { $0 = .now }
        await broker.kill()
    }

    /// Sends a signal to the broker, such as SIGSTOP to pause it and SIGCONT to resume it.
    public func send(_ signal: Int32) async { await broker.send(signal) }

    /// Kills the processes and deletes their data without waiting, when this process exits.
    func removeImmediately() {
        broker.killImmediately()
        controller?.killImmediately()
        try? FileManager.default.removeItem(atPath: data.path)
    }

    /// Stops the processes and deletes their data.
    public func remove() async {
        await broker.stop()
        await controller?.stop()
        await data.remove()
    }
}

/// An error while setting up Apache Kafka.
public struct ApacheKafkaError: Error, CustomStringConvertible {
    /// A description of the failure.
    public let description: String

    init(_ description: String) { self.description = description }
}
