import Concurrency
import Glibc
import Subprocess

/// An Apache Kafka process: a broker, a controller, or both.
actor KafkaServerProcess {
    private let name: String
    private let folder: TemporaryFolder
    private let onLine: @Sendable (String) -> Void
    private nonisolated let running = Lock<ChildProcess?>(nil)
    private nonisolated var child: ChildProcess? { running.withLock { $0 } }

    /// Formats the log folder of the process.
    /// - Parameters:
    ///   - name: The name of its files in `folder`.
    ///   - lines: The lines of server.properties.
    ///   - onLine: A callback for each logged line, called on a thread of its own.
    /// - Throws: ``ApacheKafkaError`` if KAFKA_HOME is not set or its tools fail.
    init(
        _ name: String, in folder: TemporaryFolder, _ lines: [String], onLine: @escaping @Sendable (String) -> Void
    ) async throws {
        (self.name, self.folder, self.onLine) = (name, folder, onLine)
        let properties = lines + ["log.dirs=\(folder.path)/\(name)"]
        let file = folder.write(properties.joined(separator: "\n").utf8, to: "\(name).properties")
        let format = try Self.tool("kafka-storage.sh")
        let exit = try await ChildProcess.start(format, ["format", "-t", "aGFsY3lvbi10ZXN0cy0wMQ", "-c", file]).exit()
        guard exit == .code(0) else {
            throw ApacheKafkaError("kafka-storage.sh failed to format the log folder: \(exit)")
        }
    }

    /// Starts the process and waits until `serves` returns true.
    func start(until serves: @escaping @Sendable () async -> Bool) async throws {
        var options = ChildProcess.Options()
        options.environment = [
            "PATH": getenv("PATH").map { String(cString: $0) } ?? "/usr/bin:/bin",
            "KAFKA_HEAP_OPTS": "-Xms128m -Xmx256m",
        ]
        // The process runs for seconds only. Optimizing its code would take more time than it saves.
        let compilerOption = "-XX:TieredStopAtLevel=1"
        options.environment?["KAFKA_OPTS"] = compilerOption
        if let more = getenv("KAFKA_OPTS") {
            options.environment?["KAFKA_OPTS"] = "\(compilerOption) \(String(cString: more))"
        }
        if let home = getenv("JAVA_HOME") { options.environment?["JAVA_HOME"] = String(cString: home) }
        let lastLines = Lock<[String]>([])
        let output = ChildProcess.Output.lines { [onLine] line in
            lastLines.withLock { $0 = $0.suffix(59) + [line] }
            onLine(line)
        }
        (options.output, options.errors) = (output, output)
        let child = try await ChildProcess.start(
            Self.tool("kafka-server-start.sh"), ["\(folder.path)/\(name).properties"], options: options)
        running.withLock { $0 = child }
        // Not read again afterwards: a single probe of a broker that serves may fail on a busy machine. The error
        // below reports a timeout.
        let isReady = try? await firstValue("Apache Kafka's \(name) is ready or exits") { () async throws -> Bool? in
            await serves() ? true : child.isRunning ? nil : false
        }
        guard isReady == true else {
            let isLate = child.isRunning
            // Another attempt needs its port and its folder.
            child.send(SIGKILL)
            let exit = await child.exit()
            let end = isLate ? "was not ready after two minutes" : "exited: \(exit)"
            throw ApacheKafkaError(
                "Apache Kafka's \(name) \(end)\n" + lastLines.withLock { $0.joined(separator: "\n") })
        }
    }

    /// Kills the process, as a crash does.
    func kill() async {
        child?.send(SIGKILL)
        await child?.exit()
    }

    nonisolated var isRunning: Bool { child?.isRunning ?? false }

    /// Sends SIGKILL, without waiting.
    nonisolated func killImmediately() { child?.send(SIGKILL) }

    func send(_ signal: Int32) { child?.send(signal) }

    func stop() async { await child?.stop(grace: .seconds(10)) }

    static func tool(_ name: String) throws -> String {
        guard let home = ApacheKafka.home else { throw ApacheKafkaError("KAFKA_HOME is not set") }
        return "\(home)/bin/\(name)"
    }
}

/// A metadata request to a Kafka broker without a client library. An open port does not yet mean that the broker has
/// joined its cluster.
enum KafkaProbe {
    /// Returns the number of brokers in the metadata of the broker on `port`, or 0 if it does not respond.
    static func brokerCount(port: UInt16) -> Int32 {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { return 0 }
        defer { close(descriptor) }
        var limit = timeval(tv_sec: 1, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        guard LoopbackAddress.with(port: port, { connect(descriptor, $0, $1) == 0 }) else { return 0 }
        // Metadata request, version 1 (https://kafka.apache.org/protocol): size, api key 3, version 1, correlation 0,
        // no client id, an empty list of topics.
        let request: [UInt8] = [0, 0, 0, 14, 0, 3, 0, 1, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0]
        guard send(descriptor, request, request.count, Int32(MSG_NOSIGNAL)) == request.count else { return 0 }
        // Response: size, correlation, number of brokers, …
        var response = [UInt8](repeating: 0, count: 12)
        guard recv(descriptor, &response, response.count, Int32(MSG_WAITALL)) == response.count else { return 0 }
        return response[8..<12].reduce(0) { $0 << 8 | Int32($1) }
    }
}
