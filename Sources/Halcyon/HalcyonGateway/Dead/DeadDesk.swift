import HalcyonCluster
import Kafka
import Telemetry
import Threads

/// Reads dead letters for all who ask this gateway, one request at a time, and remembers which of them are open: of what was read once the next
/// request reads nothing but letters.
final class DeadDesk: Sendable {
    let topic: DeadTopic
    let options: DeadOptions
    private let log: Log
    private let turn = Slots(1)
    private let book = Lock(DeadBook())

    init(_ topic: DeadTopic, options: DeadOptions, log: Log) {
        self.topic = topic
        self.options = options
        self.log = log
    }

    /// Calls `body` with a book that is up to date, and the moment by which it must have read what it reads.
    /// - Throws: ``Problem`` when the topic cannot be read, or not in time: then the next one goes on where this one has come to.
    func read<Value: Sendable>(
        _ body: (DeadBook, ContinuousClock.Instant) async throws -> Value
    ) async throws -> Value {
        let deadline = ContinuousClock.now + options.time
        let place = Place(of: turn)
        defer { place.release() }
        try await by(deadline, orThrow: Self.tooMany) { try await place.acquire() }
        do {
            return try await body(try await current(until: deadline), deadline)
        } catch let error as KafkaError {
            log.warning("dead letters cannot be read", ["error": "\(error)"])
            throw Problem(.unavailable, "dead letters cannot be read now; ask again", retryAfter: 5)
        }
    }

    /// How many letters are open, given the offsets between which the topic's partitions are: it is not read where nothing has changed.
    /// - Returns: nil when nobody can say.
    func openCount(_ offsets: [Int32: Range<Int64>]) async -> Int? {
        let known = book.withLock { book in
            let isCurrent = offsets.allSatisfy { book.next[$0.key] == $0.value.upperBound }
            if isCurrent { book.forget(before: offsets.mapValues(\.lowerBound)) }
            return isCurrent ? book.count : nil
        }
        if let known { return known }
        // What Kafka has against it is logged; where there are too many letters the next reading goes on.
        return try? await read { book, _ in book.count }
    }

    /// All letters, with what has come since it was last read.
    private func current(until deadline: ContinuousClock.Instant) async throws -> DeadBook {
        var current = book.withLock { $0 }
        defer { book.withLock { [current] in $0 = current } }
        guard try await topic.update(&current, until: deadline) else { throw Self.tooMany }
        return current
    }

    private static let tooMany = Problem(
        .unavailable, "there are more dead letters than can be read in the time for one request; ask again, it goes on",
        retryAfter: 1)
}

/// How dead letters are listed and replayed over HTTP.
public struct DeadOptions: Sendable {
    /// Letters of one request at most: those of a page, and those that are replayed at once.
    public var most = 1000
    /// Bytes of a page of letters: it ends with the one that makes it longer.
    public var pageBytes = 4 << 20
    /// How long the topic is read for one request, waiting for others included. What was found by then is answered.
    public var time = Duration.seconds(20)

    /// The defaults.
    public init() {}
}
