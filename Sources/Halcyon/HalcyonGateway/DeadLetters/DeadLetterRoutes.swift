import Concurrency
import HTTPServer
import HalcyonCluster
import JSON
import Kafka
import Telemetry

/// Routes that list, return, replay and discard dead letters.
struct DeadLetterRoutes: Sendable {
    let deadLetters: DeadLetterService
    let producer: Producer

    /// The maximum size of a request to replay or discard in bytes, enough for the maximum number of names.
    private var bodyBytes: Int { 4096 + 40 * deadLetters.options.most }

    var all: [Route] {
        [
            Route("GET", "/v1/dead", for: .admin, answer: list),
            Route("POST", "/v1/dead/replay", for: .admin) { try await run(.replay, $0) },
            Route("POST", "/v1/dead/discard", for: .admin) { try await run(.discard, $0) },
            Route("GET", "/v1/dead/{letter}", for: .admin, answer: show),
        ]
    }

    private func list(_ call: RequestContext) async throws -> HTTPServer.Response {
        let request = try DeadLetterRequest(query: call.request.query, most: deadLetters.options.most)
        let json = try await deadLetters.read { index, deadline in
            var (letters, bytes): ([[UInt8]], Int) = ([], 0)
            let next = try await deadLetters.topic.forEach(
                request.query, in: index, from: request.cursor.offsets, until: deadline
            ) { letter in
                letters.append(letter.json(isWhole: false))
                bytes += letters.last?.count ?? 0
                return letters.count < request.limit && bytes < deadLetters.options.pageBytes
            }
            var writer = JSONWriter(capacity: bytes + 256)
            writer.object { writer in
                writer.member("open", Int64(index.count))
                writer.name("letters")
                writer.array { writer in for letter in letters { writer.raw(letter) } }
                writer.member("next", next.map { TopicCursor($0).text })
            }
            return writer.bytes
        }
        return HTTPServer.Response(status: 200, json: json)
    }

    private func show(_ call: RequestContext) async throws -> HTTPServer.Response {
        let letter = DeadLetterID(call["letter"])
        let json = try await deadLetters.read { index, deadline -> [UInt8]? in
            guard let letter else { return nil }
            var json: [UInt8]?
            _ = try await deadLetters.topic.forEach(DeadLetterQuery(letters: [letter]), in: index, until: deadline) {
                json = $0.json(isWhole: true)
                return false
            }
            return json
        }
        guard let json else { throw Problem(.notFound, "no such dead letter") }
        return HTTPServer.Response(status: 200, json: json)
    }

    /// Replays or discards the requested dead letters. Named ones that were replayed or discarded before are reported
    /// as such and not changed.
    private func run(
        _ action: DeadLetterReplayer.Action, _ call: RequestContext
    ) async throws -> HTTPServer.Response {
        guard call.bodyType == "application/json" else {
            throw Problem(.unsupportedMediaType, "unsupported Content-Type; use application/json")
        }
        let request = try DeadLetterRequest(
            replay: try await call.request.body.collect(upTo: bodyBytes), most: deadLetters.options.most)
        let replaying = DeadLetterReplayer(deadLetters.topic, by: producer, action: action, isDry: request.isDry)
        let json = try await deadLetters.read { index, deadline in
            var replayed: [ReplayResult] = []
            let next = try await replaying.run(
                request.query, in: index, from: request.cursor.offsets, limit: request.limit, until: deadline
            ) { replayed.append($0) }
            var writer = JSONWriter(capacity: 1024)
            writer.object { writer in
                writer.member("dryRun", request.isDry)
                writer.name("letters")
                writer.array { writer in for letter in replayed { writer.value(letter) } }
                if let letters = request.query.letters {
                    let missing = letters.subtracting(replayed.map(\.letter.letter.id)).sorted()
                    writer.name("missing")
                    writer.array { writer in for letter in missing { writer.value(letter.description) } }
                }
                writer.member("next", next.map { TopicCursor($0).text })
            }
            return writer.bytes
        }
        return HTTPServer.Response(status: 200, json: json)
    }
}

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
