import HalcyonModel

/// A record that was sent and acknowledged.
public struct SentJob: Sendable {
    /// The id of the job. Records with the same id are distinguished by their positions.
    public var id: String
    /// The position, `TOPIC-PARTITION-OFFSET`, with which the ids of its events begin.
    public var place: String
    /// The kind of the job.
    public var kind: String
    /// The allowed outcomes: `ready`, `cancelled`, `superseded`, `failed/CODE`.
    public var allowed: Set<String>
    /// The path of its source at the origin, if requests for it are counted.
    public var source: String?
    /// A text for each output. Outputs with the same text are the same image.
    public var outputs: [String]
    /// True if the job is ready only when its results are in the result store.
    public var requiresStore: Bool
    /// The display slot of the job.
    public var slot: String?
    /// The generation of the job in its display slot.
    public var generation: Int
    /// The seconds after which it may start.
    public var notBefore: Double
    /// The batch of the job, and its index in it.
    public var batch: BatchMembership?
    /// The time at which it was sent, in seconds of the run.
    public var at: Double

    /// Creates a record.
    public init(
        id: String, place: String, kind: String, allowed: Set<String>, source: String? = nil, outputs: [String] = [],
        requiresStore: Bool = false, slot: String? = nil, generation: Int = 0, notBefore: Double = 0,
        batch: BatchMembership? = nil, at: Double
    ) {
        self.id = id
        self.place = place
        self.kind = kind
        self.allowed = allowed
        self.source = source
        self.outputs = outputs
        self.requiresStore = requiresStore
        self.slot = slot
        self.generation = generation
        self.notBefore = notBefore
        self.batch = batch
        self.at = at
    }
}

/// A terminal event of a job.
public struct TerminalEvent: Sendable {
    /// The id of the event.
    public var id: String
    /// The outcome: `ready`, `cancelled`, `superseded`, `failed/CODE`.
    public var end: String
    /// The error message of a failure.
    public var message: String
    /// The cache status of a `ready` event.
    public var origin: String?
    /// The outputs of a `ready` event.
    public var outputs: [Output]
    /// The time at which it was read, in seconds of the run.
    public var at: Double

    /// An output of an event.
    public struct Output: Hashable, Sendable {
        /// The key of the result.
        public var key: String
        /// The SHA-256 of the bytes, if the event carries them, or else the one that it states.
        public var sha256: String

        /// Creates an output.
        public init(key: String, sha256: String) {
            self.key = key
            self.sha256 = sha256
        }
    }

    /// Creates an event.
    public init(
        id: String, end: String, message: String = "", origin: String? = nil, outputs: [Output] = [], at: Double
    ) {
        self.id = id
        self.end = end
        self.message = message
        self.origin = origin
        self.outputs = outputs
        self.at = at
    }

    /// The position of the job's record: the event's id up to its last hyphen.
    public var place: String { String(id[..<(id.lastIndex(of: "-") ?? id.endIndex)]) }
}

/// The completion event of a batch.
public struct BatchCompletion: Sendable {
    /// The id of the batch.
    public var batch: String
    /// The number of jobs by outcome: `ready`, `failed`, `cancelled`, `superseded`.
    public var counts: [String: Int]

    /// Creates a completion.
    public init(batch: String, counts: [String: Int]) {
        self.batch = batch
        self.counts = counts
    }
}

/// A fault that was injected.
public struct FaultRecord: Sendable {
    /// The kind of the fault.
    public var kind: FaultKind
    /// The target of the fault and how it was affected.
    public var what: String
    /// The time at which it began, in seconds of the run.
    public var begin: Double
    /// The time at which it ended.
    public var end: Double
    /// The maximum number of fetches of one source that it can have repeated: those of workers that crashed, were
    /// frozen or were removed from the group.
    public var disturbances: Int
    /// True if workers lost data in Redis or the connection to it.
    public var hitsRedis: Bool

    /// The time in seconds after its end during which a fault may still have effects: leases expire, the group
    /// rebalances, and circuit breakers are open.
    static let echo = 20.0

    /// True if the fault may affect something that lives from one time to another.
    func affects(from: Double, to: Double) -> Bool { begin <= to && end + Self.echo >= from }

    /// Creates a record of a fault.
    public init(
        kind: FaultKind, what: String = "", begin: Double, end: Double, disturbances: Int = 1, hitsRedis: Bool = false
    ) {
        self.kind = kind
        self.what = what
        self.begin = begin
        self.end = end
        self.disturbances = disturbances
        self.hitsRedis = hitsRedis
    }

    /// A one-line description.
    public var description: String { "\(kind.rawValue) \(what) from \(seconds(begin)) to \(seconds(end))" }
}

/// Formats seconds with one decimal: `12.3 s`.
func seconds(_ value: Double) -> String {
    let tenths = Int((value * 10).rounded())
    return "\(tenths / 10).\(abs(tenths % 10)) s"
}
