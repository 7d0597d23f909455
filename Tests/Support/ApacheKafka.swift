import Glibc
import Processes

/// One node of Apache Kafka (KRaft: broker and controller in one) on free ports of 127.0.0.1.
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
    private let controllerPort: UInt16
    private let data: TemporaryFolder
    private let process: Running

    /// The server's process of the moment.
    private actor Running {
        var child: ChildProcess?
        func set(_ child: ChildProcess?) { self.child = child }
    }

    /// Makes an empty broker, which does not run yet. Topics are not made by themselves.
    /// - Parameter properties: lines for server.properties, after those of this type.
    /// - Throws: ``ApacheKafkaError`` when KAFKA_HOME is not set or its tools fail.
    public init(port: UInt16 = LoopbackPort.free(), properties: [String] = []) async throws {
        let format = try Self.tool("kafka-storage.sh")
        self.port = port
        controllerPort = LoopbackPort.free()
        data = TemporaryFolder("kafka")
        process = Running()
        let lines = [
            "process.roles=broker,controller", "node.id=1", "controller.quorum.voters=1@127.0.0.1:\(controllerPort)",
            "listeners=PLAINTEXT://127.0.0.1:\(port),CONTROLLER://127.0.0.1:\(controllerPort)",
            "advertised.listeners=PLAINTEXT://127.0.0.1:\(port)", "controller.listener.names=CONTROLLER",
            "log.dirs=\(data.path)/logs", "auto.create.topics.enable=false", "offsets.topic.replication.factor=1",
            "offsets.topic.num.partitions=4", "transaction.state.log.replication.factor=1",
            "transaction.state.log.min.isr=1", "transaction.state.log.num.partitions=4",
            "share.coordinator.state.topic.replication.factor=1", "group.initial.rebalance.delay.ms=0",
            // Kafka's own 9 s would make a restarted broker wait for its own dead session.
            "broker.session.timeout.ms=2000", "broker.heartbeat.interval.ms=400",
        ]
        let file = data.write((lines + properties).joined(separator: "\n").utf8, to: "server.properties")
        let exit = try await ChildProcess.start(format, ["format", "-t", "aGFsY3lvbi10ZXN0cy0wMQ", "-c", file]).exit()
        guard exit == .code(0) else {
            await data.remove()
            throw ApacheKafkaError("kafka-storage.sh cannot format a log folder: \(exit)")
        }
    }

    /// Starts the broker, again if it was stopped or killed, and waits until it serves clients.
    public func start() async throws {
        var options = ChildProcess.Options()
        options.environment = [
            "PATH": getenv("PATH").map { String(cString: $0) } ?? "/usr/bin:/bin",
            "KAFKA_HEAP_OPTS": "-Xms128m -Xmx256m",
        ]
        if let java = getenv("JAVA_HOME") { options.environment?["JAVA_HOME"] = String(cString: java) }
        let child = try await ChildProcess.start(
            Self.tool("kafka-server-start.sh"), ["\(data.path)/server.properties"], options: options)
        await process.set(child)
        try await until("Apache Kafka serves on \(port)", within: .seconds(120)) { [port] in
            KafkaProbe.brokerCount(port: port) > 0
        }
    }

    /// `127.0.0.1:PORT`, for `bootstrap.servers`.
    public var bootstrapServers: String { "127.0.0.1:\(port)" }

    /// Ends it at once, as a crash does; what it had acknowledged is there after ``start()``.
    public func kill() async {
        guard let child = await process.child else { return }
        child.send(SIGKILL)
        await child.exit()
    }

    /// Ends it and deletes its data.
    public func remove() async {
        await process.child?.stop(grace: .seconds(10))
        await data.remove()
    }

    private static func tool(_ name: String) throws -> String {
        guard let home else { throw ApacheKafkaError("KAFKA_HOME is not set") }
        return "\(home)/bin/\(name)"
    }
}

/// Apache Kafka could not be set up.
public struct ApacheKafkaError: Error, CustomStringConvertible {
    /// What failed.
    public let description: String

    init(_ description: String) { self.description = description }
}
