import JSON

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
