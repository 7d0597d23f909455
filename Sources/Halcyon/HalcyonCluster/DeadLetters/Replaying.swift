import HalcyonModel
import JSON
import Kafka

/// Sends letters back to where they came from, and notes that in the topic.
///
/// Nothing keeps two from doing so at once: then a letter is sent twice. None is lost.
public struct Replaying: Sendable {
    private let topic: DeadTopic
    private let producer: Producer
    private let isDry: Bool

    /// Letters on their way at once, and what they may weigh (bytes) before they are sent.
    private static let (batch, batchBytes) = (256, 8 << 20)

    /// - Parameters:
    ///   - producer: stays its maker's.
    ///   - isDry: only says what would be done.
    public init(_ topic: DeadTopic, by producer: Producer, isDry: Bool) {
        self.topic = topic
        self.producer = producer
        self.isDry = isDry
    }

    /// Sends back all letters that are wanted, up to a number of them.
    /// - Parameters:
    ///   - positions: as of ``DeadTopic/forEach(_:in:from:until:_:)``, and so is the deadline: what was found until then is sent.
    ///   - tell: is told of each.
    /// - Returns: where to go on; nil when no such letter is left.
    /// - Throws: `KafkaError` when the topic cannot be read, `CancellationError`.
    public func run(
        _ query: LetterQuery, in book: DeadBook, from positions: [Int32: Int64] = [:], atMost limit: Int = .max,
        until deadline: ContinuousClock.Instant? = nil, _ tell: (ReplayedLetter) -> Void
    ) async throws -> [Int32: Int64]? {
        var (waiting, bytes, left): ([LetterView], Int, Int) = ([], 0, limit)
        let next = try await topic.forEach(query, in: book, from: positions, until: deadline) { letter in
            waiting.append(letter)
            bytes += letter.letter.record.value?.count ?? 0
            left -= 1
            if waiting.count == Self.batch || bytes >= Self.batchBytes {
                await send(waiting).forEach(tell)
                (waiting, bytes) = ([], 0)
            }
            return left > 0 && !Task.isCancelled
        }
        await send(waiting).forEach(tell)
        return next
    }

    private func send(_ letters: [LetterView]) async -> [ReplayedLetter] {
        await withTaskGroup(of: (Int, ReplayedLetter).self) { group in
            for (index, letter) in letters.enumerated() {
                group.addTask { (index, ReplayedLetter(letter: letter, outcome: await replay(letter))) }
            }
            return await group.reduce(into: [:]) { $0[$1.0] = $1.1 }.sorted { $0.key < $1.key }.map(\.value)
        }
    }

    private func replay(_ view: LetterView) async -> ReplayedLetter.Outcome {
        if view.isReplayed { return .already }
        let letter = view.letter
        do {
            let record = try Replay.record(of: letter, topic.topics)
            if isDry { return .wouldBe }
            try await producer.send(record)
        } catch {
            return .failed("not replayed: \((error as? Failure)?.message ?? "\(error)")")
        }
        do {
            try await producer.send(Replay.mark(letter.id, topic.topics))
        } catch {
            return .failed("replayed, but that could not be noted: \(error)")
        }
        return .replayed
    }
}

/// A letter that was to be replayed, and what came of it.
public struct ReplayedLetter: JSONWritable, Sendable {
    /// What came of a letter.
    public enum Outcome: Hashable, Sendable {
        /// It was sent back.
        case replayed
        /// It would be.
        case wouldBe
        /// It had been sent back before, and was not sent again.
        case already
        /// It was not, or that could not be noted; and why.
        case failed(String)

        /// For programs.
        public var word: String {
            switch self {
            case .replayed: "replayed"
            case .wouldBe: "would be replayed"
            case .already: "replayed already"
            case .failed: "failed"
            }
        }
    }

    /// The letter.
    public let letter: LetterView
    /// What came of it.
    public let outcome: Outcome

    /// Why not; nil when it was.
    public var reason: String? {
        if case .failed(let reason) = outcome { reason } else { nil }
    }

    /// As one JSON object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("letter", letter.letter.id.description)
            writer.member("outcome", outcome.word)
            writer.member("message", reason)
            writer.member("lane", letter.lane?.rawValue)
            writer.member("webhook", letter.webhook)
            writer.member("job", letter.job)
            writer.member("source", letter.source)
        }
    }
}
