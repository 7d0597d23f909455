/// A record that was sent and acknowledged.
public struct SentJob: Sendable {
    /// The job's id. Records of one id are told apart by where they lie.
    public var id: String
    /// `TOPIC-PARTITION-OFFSET`, as the ids of its events begin.
    public var place: String
    /// What kind of job it is.
    public var kind: String
    /// How it may end: `ready`, `cancelled`, `superseded`, `failed/CODE`.
    public var allowed: Set<String>
    /// The path of its source at the origin, where requests for it are counted.
    public var source: String?
    /// The slot, and its generation.
    public var slot: String?
    /// Which job of the slot it is.
    public var generation: Int
    /// When it was sent, in seconds of the run.
    public var at: Double

    /// All that is known of a record.
    public init(
        id: String, place: String, kind: String, allowed: Set<String>, source: String? = nil, slot: String? = nil,
        generation: Int = 0, at: Double
    ) {
        self.id = id
        self.place = place
        self.kind = kind
        self.allowed = allowed
        self.source = source
        self.slot = slot
        self.generation = generation
        self.at = at
    }
}

/// An event that says how a job ended.
public struct TerminalEvent: Sendable {
    /// The event's id.
    public var id: String
    /// `ready`, `cancelled`, `superseded`, `failed/CODE`.
    public var end: String
    /// What a failure says.
    public var message: String
    /// When it was read, in seconds of the run.
    public var at: Double

    /// All that is known of an event.
    public init(id: String, end: String, message: String = "", at: Double) {
        self.id = id
        self.end = end
        self.message = message
        self.at = at
    }

    /// Where the job's record lies: the event's id up to its last hyphen.
    public var place: String { String(id[..<(id.lastIndex(of: "-") ?? id.endIndex)]) }
}

/// A fault that was made.
public struct FaultRecord: Sendable {
    /// Its kind.
    public var kind: FaultKind
    /// Whom it befell, and how.
    public var what: String
    /// When it began, in seconds of the run.
    public var begin: Double
    /// When it was mended.
    public var end: Double
    /// How many works on one source it can have cost: those of workers that went, stood still or were left out by their group.
    public var disturbances: Int
    /// Whether workers were without what Redis knows, or without Redis.
    public var hitsRedis: Bool

    /// All that is known of a fault.
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

    /// A line about it.
    public var description: String { "\(kind.rawValue) \(what) from \(seconds(begin)) to \(seconds(end))" }
}

/// Seconds with a decimal: `12.3 s`.
func seconds(_ value: Double) -> String {
    let tenths = Int((value * 10).rounded())
    return "\(tenths / 10).\(abs(tenths % 10)) s"
}
