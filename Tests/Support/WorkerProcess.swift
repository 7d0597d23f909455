import Glibc
import Subprocess

/// `halcyon worker` as a process of its own, with its settings in its environment.
public enum WorkerProcess {
    /// Starts one that may load from this machine, and whose death Kafka notices after 6 s.
    /// - Parameters:
    ///   - brokers: Kafka's address.
    ///   - redisPort: Redis' port of 127.0.0.1.
    ///   - settings: more of its environment, which beats what is set here.
    ///   - errors: where its log goes.
    public static func start(
        brokers: String, redisPort: UInt16, _ settings: [String: String] = [:],
        errors: ChildProcess.Output = .inherited
    ) async throws -> ChildProcess {
        var options = ChildProcess.Options()
        options.environment = inherited.merging([
            "HALCYON_KAFKA_BROKERS": brokers, "HALCYON_REDIS_URL": "redis://127.0.0.1:\(redisPort)",
            "HALCYON_SOURCES_ALLOW": "127.0.0.0/8", "HALCYON_KAFKA_PROPERTY_session.timeout.ms": "6000",
        ]) { $1 }.merging(settings) { $1 }
        options.errors = errors
        return try await ChildProcess.start(HalcyonExecutable.path, ["worker"], options: options)
    }

    /// This process's environment but for Halcyon's settings.
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
