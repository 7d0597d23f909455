import Concurrency
import Glibc
import Kafka
import Subprocess

/// One broker of Apache Kafka on free ports of 127.0.0.1, its own controller unless that is to be another process.
///
/// The distribution is the one KAFKA_HOME names. Suites that want it are skipped when it is not set:
/// `.enabled(if: ApacheKafka.isAvailable)`.
public final class ApacheKafka: Sendable {
    /// KAFKA_HOME; nil when it is not set or empty.
    public static let home = getenv("KAFKA_HOME").map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 }

    /// Whether KAFKA_HOME is set. When it is not, the first look prints one line, so that nobody takes a skipped test
    /// for a passed one.
    public static let isAvailable: Bool = {
        if home == nil { print("SKIPPED: tests against Apache Kafka, because KAFKA_HOME is not set") }
        return home != nil
    }()

    /// The port clients connect to.
    public let port: UInt16
    private let data: TemporaryFolder
    private let broker: KafkaServerProcess
    /// nil where the broker is its own.
    private let controller: KafkaServerProcess?
    private let controllerPort: UInt16
    private let lastKill = Lock<ContinuousClock.Instant?>(nil)

    /// For how long a controller takes a dead broker for a living one. Kafka's own 9 s would make a restarted one wait for itself.
    private static let session = Duration.seconds(2)

    /// Another port that clients may connect to. They are told to go on through the advertised one, behind which somebody
    /// stands who passes on what comes.
    public struct Door: Sendable {
        let port: UInt16
        let advertised: UInt16

        /// A door by its two ports.
        public init(port: UInt16, advertised: UInt16) {
            self.port = port
            self.advertised = advertised
        }
    }

    /// Makes an empty broker, which does not run yet. Topics are not made by themselves.
    /// - Parameters:
    ///   - properties: lines for server.properties, after those of this type.
    ///   - doors: further ports to listen on.
    ///   - hasOwnController: whether the controller is a process of its own, as it is for whoever runs Kafka for others. A broker that is its
    ///     own, and is killed, takes itself for the leader when it comes back, then for dead, then for the leader again; where it is slow it
    ///     then mixes up two loads of `__consumer_offsets`, and forgets or makes up what groups have committed (seen with 4.1.1).
    ///   - onLine: told of each line that they log, on a thread of its own.
    /// - Throws: ``ApacheKafkaError`` when KAFKA_HOME is not set or its tools fail.
    public init(
        port: UInt16 = LoopbackPort.reserve(), properties: [String] = [], doors: [Door] = [],
        hasOwnController: Bool = false, onLine: @escaping @Sendable (String) -> Void = { _ in }
    ) async throws {
        self.port = port
        controllerPort = LoopbackPort.reserve()
        data = TemporaryFolder("kafka")
        let listeners = doors.enumerated().map { "DOOR\($0)://127.0.0.1:\($1.port)," }.joined()
        let advertised = doors.enumerated().map { "DOOR\($0)://127.0.0.1:\($1.advertised)," }.joined()
        let protocols = doors.indices.map { "DOOR\($0):PLAINTEXT," }.joined()
        let control = "CONTROLLER://127.0.0.1:\(controllerPort)"
        let common = [
            "controller.quorum.voters=\(hasOwnController ? 2 : 1)@127.0.0.1:\(controllerPort)",
            "controller.listener.names=CONTROLLER",
            "listener.security.protocol.map=\(protocols)PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "broker.session.timeout.ms=\(Int(Self.session / .milliseconds(1)))", "broker.heartbeat.interval.ms=400",
        ]
        let lines =
            common + [
                "process.roles=broker\(hasOwnController ? "" : ",controller")", "node.id=1",
                "listeners=\(listeners)PLAINTEXT://127.0.0.1:\(port)\(hasOwnController ? "" : ",\(control)")",
                "advertised.listeners=\(advertised)PLAINTEXT://127.0.0.1:\(port)",
                "auto.create.topics.enable=false", "offsets.topic.replication.factor=1",
                "offsets.topic.num.partitions=4", "transaction.state.log.replication.factor=1",
                "transaction.state.log.min.isr=1", "transaction.state.log.num.partitions=4",
                "share.coordinator.state.topic.replication.factor=1", "group.initial.rebalance.delay.ms=0",
                // Compaction's buffer takes 128 MB in one piece unless told otherwise, half of the heap it has here.
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

    /// Starts it, the broker alone where that was killed, and waits until it serves clients.
    public func start() async throws {
        if let last = lastKill.withLock({ $0 }) {
            // The controller is to have noticed.
            if controller != nil { try await Task.sleep(until: last + Self.session * 2) }
        } else {
            try await controller?.start { [controllerPort] in await blocking { LoopbackPort.answers(controllerPort) } }
        }
        try await broker.start { [port] in await blocking { KafkaProbe.brokerCount(port: port) > 0 } }
    }

    /// `127.0.0.1:PORT`, for `bootstrap.servers`.
    public var bootstrapServers: String { "127.0.0.1:\(port)" }

    /// Makes topics.
    public func create(_ topics: [String], partitions: Int) async throws {
        let admin = try Admin(properties: ["bootstrap.servers": bootstrapServers])
        _ = try await admin.create(topics.map { NewTopic($0, partitions: partitions, replication: 1) })
        await admin.close()
    }

    /// Changes who may do what with a topic, for which the broker needs an authorizer (`authorizer.class.name`).
    /// - Parameter change: arguments of Kafka's AclCommand.
    /// - Throws: ``ApacheKafkaError``.
    public func acl(_ change: [String], _ topic: String) async throws {
        let exit = try await ChildProcess.start(
            KafkaServerProcess.tool("kafka-run-class.sh"),
            ["org.apache.kafka.tools.AclCommand", "--bootstrap-server", bootstrapServers, "--topic", topic] + change
        ).exit()
        guard exit == .code(0) else { throw ApacheKafkaError("AclCommand changes nothing: \(exit)") }
    }

    /// Ends the broker at once, as a crash does; what it had acknowledged is there after ``start()``.
    public func kill() async {
        lastKill.withLock { $0 = .now }
        await broker.kill()
    }

    /// Has the broker stand still (SIGSTOP), or go on (SIGCONT).
    public func send(_ signal: Int32) async { await broker.send(signal) }

    /// Ends it and deletes its data.
    public func remove() async {
        await broker.stop()
        await controller?.stop()
        await data.remove()
    }
}

/// Apache Kafka could not be set up.
public struct ApacheKafkaError: Error, CustomStringConvertible {
    /// What failed.
    public let description: String

    init(_ description: String) { self.description = description }
}
