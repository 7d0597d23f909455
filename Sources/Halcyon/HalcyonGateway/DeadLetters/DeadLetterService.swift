import Concurrency
import HalcyonCluster
import Kafka
import Telemetry

/// Reads dead letters for all clients of this gateway, one request at a time. It remembers the ids of those that were
/// not replayed, so that the next request reads only new records and the requested dead letters.
final class DeadLetterService: Sendable {
    let topic: DeadLetterReader
    let options: DeadLetterOptions
    private let log: Log
    private let mutex = PrioritySemaphore(1)
    private let index = Lock(DeadLetterIndex())

    init(_ topic: DeadLetterReader, options: DeadLetterOptions, log: Log) {
        self.topic = topic
        self.options = options
        self.log = log
    }

    /// Calls `body` with an up-to-date index and the deadline by which it must have finished reading.
    /// - Throws: ``Problem`` if the topic cannot be read in time. The next request continues where this one stopped.
    func read<Value: Sendable>(
        _ body: (DeadLetterIndex, ContinuousClock.Instant) async throws -> Value
    ) async throws -> Value {
        let deadline = ContinuousClock.now + options.time
        let permit = SemaphorePermit(of: mutex)
        defer { permit.release() }
        try await withDeadline(deadline, throwing: Self.tooMany) { try await permit.acquire() }
        do {
            return try await body(try await current(until: deadline), deadline)
        } catch let error as KafkaError {
            log.warning("failed to read dead letters", ["error": "\(error)"])
            throw Problem(.unavailable, "dead letters cannot be read at the moment; try again", retryAfter: 5)
        }
    }

    /// Returns the number of dead letters that were not replayed. Reads the topic only if its offsets have changed.
    /// - Parameter offsets: the first and the end offset of each partition of the topic.
    /// - Returns: nil if the number cannot be determined.
    func openCount(_ offsets: [Int32: Range<Int64>]) async -> Int? {
        let known = index.withLock { index in
            let isCurrent = offsets.allSatisfy { index.next[$0.key] == $0.value.upperBound }
            if isCurrent { index.forget(before: offsets.mapValues(\.lowerBound)) }
            return isCurrent ? index.count : nil
        }
        if let known { return known }
        // Kafka errors are logged by `read`. If there are too many dead letters, the next call continues reading.
        return try? await read { index, _ in index.count }
    }

    /// Returns the index after reading the records that were added since the last call.
    private func current(until deadline: ContinuousClock.Instant) async throws -> DeadLetterIndex {
        var current = index.withLock { $0 }
        defer { index.withLock { [current] in $0 = current } }
        guard try await topic.update(&current, until: deadline) else { throw Self.tooMany }
        return current
    }

    private static let tooMany = Problem(
        .unavailable, "the dead letters could not all be read in time; repeat the request to continue",
        retryAfter: 1)
}

/// Settings for listing and replaying dead letters over HTTP.
public struct DeadLetterOptions: Sendable {
    /// The maximum number of dead letters in a page or a replay.
    public var most = 1000
    /// The size in bytes after which a page ends. The dead letter that exceeds it is included.
    public var pageBytes = 4 << 20
    /// The time limit for reading the topic for one request, including the wait for other requests. The response
    /// contains what was found by then.
    public var time = Duration.seconds(20)

    /// Creates options with default values.
    public init() {}
}
