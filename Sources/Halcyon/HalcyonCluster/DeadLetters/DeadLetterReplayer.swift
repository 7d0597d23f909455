import HalcyonModel
import JSON
import Kafka

/// Sends dead letters back to the topics they came from, or discards them, and records that in the dead-letter topic.
///
/// Two replays may run at the same time. A dead letter may then be sent twice, but none is lost. A discarded dead
/// letter stays in the topic until Kafka deletes it; only its marker hides it.
public struct DeadLetterReplayer: Sendable {
    /// The treatment of the selected dead letters.
    public enum Action: Sendable {
        /// Sends the original message back to its topic.
        case replay
        /// Sends nothing.
        case discard
    }

    private let topic: DeadLetterReader
    private let producer: Producer
    private let action: Action
    private let isDry: Bool

    /// The maximum number of dead letters in one batch, and the number of bytes after which a batch is sent.
    private static let (batch, batchBytes) = (256, 8 << 20)

    /// Creates a replayer.
    /// - Parameters:
    ///   - producer: the producer, which the caller owns and closes.
    ///   - action: the treatment of the selected dead letters.
    ///   - isDry: true to report what would be done without sending anything.
    public init(_ topic: DeadLetterReader, by producer: Producer, action: Action = .replay, isDry: Bool) {
        self.topic = topic
        self.producer = producer
        self.action = action
        self.isDry = isDry
    }

    /// Replays or discards matching dead letters, up to a maximum number.
    /// - Parameters:
    ///   - positions: the offsets to start from, as in ``DeadLetterReader/forEach(_:in:from:until:_:)``.
    ///   - limit: the maximum number of dead letters.
    ///   - deadline: the time at which to stop. Dead letters found until then are sent.
    ///   - tell: the callback that receives each result.
    /// - Returns: the offsets to continue from; nil if no matching dead letter is left.
    /// - Throws: `KafkaError` if the topic cannot be read, `CancellationError`.
    public func run(
        _ query: DeadLetterQuery, in deadLetterIndex: DeadLetterIndex, from positions: [Int32: Int64] = [:],
        limit: Int = .max,
        until deadline: ContinuousClock.Instant? = nil, _ tell: (ReplayResult) -> Void
    ) async throws -> [Int32: Int64]? {
        var (waiting, bytes, left): ([DeadLetterSummary], Int, Int) = ([], 0, limit)
        let next = try await topic.forEach(query, in: deadLetterIndex, from: positions, until: deadline) { letter in
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

    private func send(_ letters: [DeadLetterSummary]) async -> [ReplayResult] {
        await withTaskGroup(of: (Int, ReplayResult).self) { group in
            for (index, letter) in letters.enumerated() {
                group.addTask { (index, ReplayResult(letter: letter, outcome: await settle(letter))) }
            }
            return await group.reduce(into: [:]) { $0[$1.0] = $1.1 }.sorted { $0.key < $1.key }.map(\.value)
        }
    }

    private func settle(_ view: DeadLetterSummary) async -> ReplayResult.Outcome {
        if view.isReplayed { return .already }
        return switch action {
        case .replay: await replay(view)
        case .discard: await discard(view.letter.id)
        }
    }

    private func discard(_ id: DeadLetterID) async -> ReplayResult.Outcome {
        if isDry { return .wouldBeDiscarded }
        do {
            try await producer.send(Replay.mark(id, topic.topics))
        } catch {
            return .failed("not discarded: \(error)")
        }
        return .discarded
    }

    private func replay(_ view: DeadLetterSummary) async -> ReplayResult.Outcome {
        let letter = view.letter
        do {
            let record = try Replay.record(of: letter, topic.topics)
            if isDry { return .wouldBe }
            try await producer.send(record)
        } catch {
            return .failed("not replayed: \((error as? JobError)?.message ?? "\(error)")")
        }
        do {
            try await producer.send(Replay.mark(letter.id, topic.topics))
        } catch {
            return .failed("replayed, but the replay could not be recorded: \(error)")
        }
        return .replayed
    }
}

/// The result of replaying or discarding a dead letter.
public struct ReplayResult: JSONWritable, Sendable {
    /// The outcome for a dead letter.
    public enum Outcome: Hashable, Sendable {
        /// The dead letter was sent back.
        case replayed
        /// The dead letter would be sent back by a run that is not dry.
        case wouldBe
        /// The dead letter was discarded.
        case discarded
        /// The dead letter would be discarded by a run that is not dry.
        case wouldBeDiscarded
        /// The dead letter had been sent back or discarded before, and nothing was done.
        case already
        /// The dead letter was not sent back or discarded, or that could not be recorded, for the given reason.
        case failed(String)

        /// The outcome in JSON.
        public var word: String {
            switch self {
            case .replayed: "replayed"
            case .wouldBe: "would be replayed"
            case .discarded: "discarded"
            case .wouldBeDiscarded: "would be discarded"
            case .already: "replayed already"
            case .failed: "failed"
            }
        }
    }

    /// The dead letter.
    public let letter: DeadLetterSummary
    /// The outcome for the dead letter.
    public let outcome: Outcome

    /// The reason of a failure; nil otherwise.
    public var reason: String? {
        if case .failed(let reason) = outcome { reason } else { nil }
    }

    /// Writes the result as a JSON object.
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
