import HalcyonModel

/// A job to be sent.
struct DraftJob: Sendable {
    let id: String
    let kind: JobKind
    let lane: Lane
    let json: String
    /// See ``SentJob/allowed``.
    var allowed: Set<String> = ["ready"]
    var source: String?
    /// See ``SentJob/outputs``.
    var outputs: [String] = []
    var slot: String?
    var generation = 0
    /// True if it is cancelled soon after it was sent.
    var isCancelled = false
    /// See ``SentJob/requiresStore``.
    var requiresStore = false
    /// The seconds after which it may start; 0 to start at once.
    var notBefore = 0.0
    /// The batch of the job, and its index in it.
    var batch: BatchMembership?
}

/// The kinds of jobs.
enum JobKind: String, CaseIterable, Sendable {
    /// One of several sizes of a source that other jobs use too.
    case ordinary
    /// The same with a slow origin.
    case slow
    /// A job with several outputs.
    case variants
    /// A job whose result must not be stored.
    case unstored
    /// A job whose source must not be stored.
    case volatile
    /// A job whose result must be in the result store before its event.
    case required
    /// A job whose result must not be in the result store.
    case excluded
    /// A job for a display slot that later jobs reuse.
    case slot
    /// A job that is cancelled soon.
    case cancelled
    /// A job with a short deadline.
    case deadline
    /// A job whose deadline has passed.
    case late
    /// A job that starts some seconds later.
    case scheduled
    /// A job whose size is that of a preset.
    case preset
    /// A job that only loads its source.
    case prefetch
    /// A job whose source responds with 404.
    case missing
    /// A job whose source responds with 500.
    case broken
    /// A job with a malformed file that must be rejected.
    case hostile
    /// An invalid job.
    case invalid
    /// A job that takes long to render and cannot share a result. Its deadline is one minute.
    case heavy

    /// The kinds of a run that does not select any.
    static let usual = allCases.filter { $0 != .heavy && $0 != .required }

    /// The weight of this kind: jobs per thousand of the default mix.
    var share: Int {
        switch self {
        case .ordinary: 490
        case .variants, .slot, .cancelled, .required: 50
        case .slow, .unstored, .missing, .scheduled, .preset: 40
        case .deadline, .invalid, .excluded: 25
        case .late, .volatile, .prefetch: 10
        case .hostile, .broken: 5
        case .heavy: 1000
        }
    }
}
