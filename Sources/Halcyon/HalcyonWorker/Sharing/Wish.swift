import HalcyonImaging
import HalcyonModel
import Telemetry

/// A result that a job wants made: jobs with equal wishes wait for one making.
struct Wish: Hashable, Sendable {
    /// What is wanted.
    let key: ResultKey
    /// How it may be made: a job that wants its source loaded anew does not wait for one that is content with what is kept.
    let cache: CacheUse
    /// Whether what is made goes into the result tier, and so to jobs of other workers.
    let isShared: Bool

    init(_ key: ResultKey, of work: Work) {
        self.key = key
        cache = work.job.cache
        isShared = work.sharesResults
    }
}

/// What came of a wish.
enum Making: Sendable {
    /// Another worker made it: it is in the result tier.
    case there
    /// It was made here.
    case made(Made)
    /// It cannot be made, whoever asks.
    case failed(Failure)
    /// The work ended without it, for a reason that was another job's: ask again.
    case none
}

/// A result as it was made, with all that any job needs which waited for it.
struct Made: Sendable {
    let key: ResultKey
    let image: RenderedImage
    /// What its bytes take of the worker's memory.
    let memory: ResultMemory.Share
    let facts: ResultFacts
    /// What the source's origin said, and when its last byte had come: how long each job keeps the result follows from these.
    let headers: HeaderFields
    let completedAt: Double
    /// Where the source was.
    let origin: ResultOrigin
    /// How long it took.
    var timings: Timings
    /// Under which fence it was made; 0 for none.
    let fence: Int
    /// The fence of the oldest that it was made from: its own or its source's.
    let since: Int
    /// What became of storing it.
    var storing = Storing.none
    /// The place in a trace of the job that had it made, where that is recorded.
    var maker: TraceContext?

    /// What became of storing a result.
    enum Storing: Sendable {
        /// It was not tried: it is not shared, or the rule of the job that began it does not store it.
        case none
        /// It is in the result tier until then, in seconds since 1970.
        case stored(until: Double)
        /// Redis did not take it.
        case failed
    }
}

extension Made {
    /// Whether it is in the result tier.
    var isStored: Bool { if case .stored = storing { true } else { false } }
}
