import Glibc
import Subprocess

/// `halcyon worker` as a child process that is configured by environment variables.
public enum WorkerProcess {
    /// Starts a worker that may load sources from this machine, with a timeout of Redis for busy machines. Kafka
    /// detects its crash after 6 s.
    /// - Parameters:
    ///   - executable: The path of `halcyon`.
    ///   - brokers: The bootstrap servers of Kafka.
    ///   - redisPort: The port of Redis on 127.0.0.1.
    ///   - prefix: The prefix of its topics and its group, if it shares the broker with other tests.
    ///   - settings: Further environment variables, which override those set here.
    ///   - errors: The destination of its log.
    public static func start(
        executable: String = HalcyonExecutable.path, brokers: String, redisPort: UInt16, prefix: String? = nil,
        _ settings: [String: String] = [:],
        errors: ChildProcess.Output = .inherited
    ) async throws -> ChildProcess {
        var options = ChildProcess.Options()
        options.environment = inherited.merging([
            "HALCYON_KAFKA_BROKERS": brokers, "HALCYON_REDIS_URL": "redis://127.0.0.1:\(redisPort)?timeout=60s",
            "HALCYON_SOURCES_ALLOW": "127.0.0.0/8", "HALCYON_KAFKA_PROPERTY_session.timeout.ms": "6000",
        ]) { $1 }.merging(settings) { $1 }
        if let prefix {
            options.environment?["HALCYON_KAFKA_PREFIX"] = prefix
            options.environment?["HALCYON_KAFKA_GROUP"] = group(prefix: prefix)
        }
        options.errors = errors
        return try await ChildProcess.start(executable, ["worker"], options: options)
    }

    /// The consumer group of workers with this prefix.
    public static func group(prefix: String) -> String { "\(prefix)workers" }

    /// The environment of this process without Halcyon's settings.
    private static var inherited: [String: String] {
        var result: [String: String] = [:]
        var next = environ
        while let entry = next.pointee {
            let parts = String(cString: entry).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            if !parts[0].hasPrefix("HALCYON_") { result[String(parts[0])] = parts.count > 1 ? String(parts[1]) : "" }
            next += 1
        }
        return result
    }
}
