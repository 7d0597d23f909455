import HalcyonModel

/// A job that is to be sent.
struct DraftJob: Sendable {
    let id: String
    let kind: JobKind
    let lane: Lane
    let json: String
    /// See ``SentJob/allowed``.
    var allowed: Set<String> = ["ready"]
    var source: String?
    var slot: String?
    var generation = 0
    /// Whether it is cancelled soon after it was sent.
    var isCancelled = false
}

/// What kinds of jobs there are.
enum JobKind: String, CaseIterable, Sendable {
    /// One of several sizes of a source that others want too.
    case ordinary
    /// The same of an origin that drips.
    case slow
    /// Several outputs.
    case variants
    /// Its result is not to be stored.
    case unstored
    /// Its source is not to be stored.
    case volatile
    /// For a slot that later jobs are for too.
    case slot
    /// It is cancelled soon.
    case cancelled
    /// It has little time.
    case deadline
    /// Its time is over.
    case late
    /// 404.
    case missing
    /// 500.
    case broken
    /// A file that must be refused.
    case hostile
    /// No valid job.
    case invalid
    /// It takes long to render, and nobody else's result does for it. It has a minute.
    case heavy

    /// What a run has that asks for no kinds of its own.
    static let usual = allCases.filter { $0 != .heavy }

    /// Of a thousand jobs of the mix, how many are of this kind.
    var share: Int {
        switch self {
        case .ordinary: 650
        case .variants, .slot, .cancelled: 50
        case .slow, .unstored, .missing: 40
        case .deadline, .invalid: 25
        case .late, .volatile: 10
        case .hostile, .broken: 5
        case .heavy: 1000
        }
    }
}
