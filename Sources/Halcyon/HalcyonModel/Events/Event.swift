/// What is told about a job, or about results that were purged. Each job ends in exactly one event that ``Kind/isTerminal``.
public struct Event: Sendable {
    /// CloudEvents' `type`, behind `halcyon.image.`.
    public enum Kind: String, CaseIterable, Sendable {
        case started, progress, ready, failed, cancelled, superseded, purged

        /// Whether the job ends with it.
        public var isTerminal: Bool {
            switch self {
            case .ready, .failed, .cancelled, .superseded: true
            case .started, .progress, .purged: false
            }
        }
    }

    /// What happened.
    public enum Body: Sendable {
        /// The work for the job began: its result was not there yet.
        case started
        /// The source is being loaded, in this attempt at the job.
        case progress(LoadProgress, attempt: Int)
        /// The image is there.
        case ready(Ready)
        /// It is not, and will not be.
        case failed(Failure, attempts: Int, timings: Timings)
        /// Nobody wants it any more.
        case cancelled
        /// A job of this generation, which is higher than its own, is for the same slot.
        case superseded(by: Int64)
        /// Results were forgotten. It is about no job.
        case purged(Purged)
    }

    /// Unique for each event, and the same when a redelivered job causes it again.
    public var id: String
    /// Seconds since 1970.
    public var time: Double
    /// The source as the job gave it; nil when the job could not be read so far, and where no source is known.
    public var subject: String?
    /// The job's id; nil for an event that is about none.
    public var jobID: String?
    /// The job's own values.
    public var echo: Job.Echo
    /// W3C trace context of the job.
    public var traceparent: String?
    /// Where it is told by HTTP as well; it stands beside the event, not in it.
    public var webhook: Webhook?
    /// What happened.
    public var body: Body

    /// Takes the values as they are.
    public init(
        id: String, time: Double, subject: String?, jobID: String?, echo: Job.Echo = Job.Echo(),
        traceparent: String? = nil, webhook: Webhook? = nil, body: Body
    ) {
        self.id = id
        self.time = time
        self.subject = subject
        self.jobID = jobID
        self.echo = echo
        self.traceparent = traceparent
        self.webhook = webhook
        self.body = body
    }

    /// The kind that the body says.
    public var kind: Kind {
        switch body {
        case .started: .started
        case .progress: .progress
        case .ready: .ready
        case .failed: .failed
        case .cancelled: .cancelled
        case .superseded: .superseded
        case .purged: .purged
        }
    }

    /// What messages with it are keyed by: the job's id, and without one what it is about. So events about one come in order.
    public var key: String? {
        if case .purged(let purged) = body { return purged.name }
        return jobID
    }
}

/// How much of a source has been loaded.
public struct LoadProgress: Hashable, Sendable {
    /// Bytes that have come.
    public var received: Int
    /// Bytes of all of it; nil where that is not known.
    public var total: Int?

    /// Takes the values as they are.
    public init(received: Int, total: Int? = nil) {
        self.received = received
        self.total = total
    }
}

/// The results of a job that are there.
public struct Ready: Sendable {
    /// One for each variant of the job but those of ``failures``, at least one, in its order.
    public var results: [ReadyResult]
    /// Of a job that is ready with what can be made: the variants that cannot, each with its place in the job.
    public var failures: [Failure]
    /// Where they came from; of several the one that took most.
    public var origin: ResultOrigin
    /// How long what took.
    public var timings: Timings
    /// How often it was tried.
    public var attempts: Int
    /// What was noticed of the job and did not stop it, for people.
    public var warnings: [String]

    /// Takes the values as they are.
    public init(
        results: [ReadyResult], failures: [Failure] = [], origin: ResultOrigin, timings: Timings, attempts: Int = 1,
        warnings: [String] = []
    ) {
        self.results = results
        self.failures = failures
        self.origin = origin
        self.timings = timings
        self.attempts = attempts
        self.warnings = warnings
    }

    /// When the result tier forgets the first of them, in seconds since 1970; nil when one is not stored at all.
    public var expiresAt: Double? {
        var first: Double?
        for result in results {
            guard let moment = result.expiresAt else { return nil }
            first = min(first ?? moment, moment)
        }
        return first
    }
}

/// A result that is there.
public struct ReadyResult: Sendable {
    /// The key in the result tier, also of a result that is not stored there.
    public var key: String
    /// The output.
    public var facts: ResultFacts
    /// When the result tier forgets it, in seconds since 1970; nil when it is not stored.
    public var expiresAt: Double?
    /// The bytes, when they are delivered in the event.
    public var inline: [UInt8]?

    /// Takes the values as they are.
    public init(key: String, facts: ResultFacts, expiresAt: Double?, inline: [UInt8]? = nil) {
        self.key = key
        self.facts = facts
        self.expiresAt = expiresAt
        self.inline = inline
    }
}

/// Where a result came from.
public enum ResultOrigin: String, CaseIterable, Sendable {
    /// It was in the result tier.
    case memory
    /// It was made from bytes that the source tier held.
    case sourceCache = "source-cache"
    /// It was fetched and made for this job.
    case network
    /// It was made for another job that wanted the same at the same time.
    case coalesced
}

/// What is known of an output, stored beside its bytes.
public struct ResultFacts: Hashable, Sendable {
    /// Pixels across.
    public var width: Int
    /// Pixels down.
    public var height: Int
    /// The file format.
    public var format: ImageFormat
    /// Length of the file.
    public var bytes: Int
    /// Of the file, in lower-case hexadecimal.
    public var sha256: String
    /// Frames of an animation; nil for a still image.
    public var frames: Int?
    /// Its BlurHash, when the job asked for it.
    public var blurhash: String?
    /// The colour that most of it has, as `#rrggbb`, when the job asked for it.
    public var dominantColor: String?
    /// What it was made from.
    public var source: SourceFacts
    /// Whether the source's origin, or a redirect to it, said `private` (RFC 9111, section 5.2.2.7): no cache that serves many may keep it.
    public var isPrivate: Bool

    /// Takes the values as they are.
    public init(
        width: Int, height: Int, format: ImageFormat, bytes: Int, sha256: String, frames: Int? = nil,
        blurhash: String? = nil, dominantColor: String? = nil, source: SourceFacts, isPrivate: Bool = false
    ) {
        self.width = width
        self.height = height
        self.format = format
        self.bytes = bytes
        self.sha256 = sha256
        self.frames = frames
        self.blurhash = blurhash
        self.dominantColor = dominantColor
        self.source = source
        self.isPrivate = isPrivate
    }
}

/// What is known of a source.
public struct SourceFacts: Hashable, Sendable {
    /// The status of the response, for HTTP.
    public var status: Int?
    /// The entity tag of the response, as it was sent.
    public var etag: String?
    /// Length of the source.
    public var bytes: Int
    /// Its format.
    public var format: ImageFormat
    /// Pixels across, after auto-rotation.
    public var width: Int
    /// Pixels down, after auto-rotation.
    public var height: Int
    /// Whether its file ends too early, and what there is of it was rendered.
    public var isTruncated: Bool

    /// Takes the values as they are.
    public init(
        status: Int?, etag: String?, bytes: Int, format: ImageFormat, width: Int, height: Int, isTruncated: Bool = false
    ) {
        self.status = status
        self.etag = etag
        self.bytes = bytes
        self.format = format
        self.width = width
        self.height = height
        self.isTruncated = isTruncated
    }
}

/// What was forgotten, as its event tells it.
public struct Purged: Hashable, Sendable {
    /// What was asked for.
    public enum Target: Hashable, Sendable {
        /// A source, by its text.
        case source(String)
        /// A tag.
        case tag(String)
        /// A result's key.
        case key(String)
    }

    /// What was asked for.
    public var target: Target
    /// Whose results they were; nil for those of nobody in particular.
    public var tenant: String?
    /// How many results were there.
    public var count: Int

    /// Takes the values as they are.
    public init(_ target: Target, of tenant: String? = nil, count: Int) {
        self.target = target
        self.tenant = tenant
        self.count = count
    }

    /// Of a purge that found so many results.
    public init(_ purge: Purge, count: Int) {
        let target: Target =
            switch purge.target {
            case .source(let source): .source(source.shownText)
            case .tag(let tag): .tag(tag)
            case .key(let key): .key(key.description)
            }
        self.init(target, of: purge.tenant, count: count)
    }

    /// The text of what was asked for.
    public var name: String {
        switch target {
        case .source(let name), .tag(let name), .key(let name): name
        }
    }
}
