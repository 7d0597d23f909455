/// The batch that a job belongs to.
public struct BatchMembership: Hashable, Sendable {
    /// The id of the batch; see ``Batch/isID(_:)``.
    public var batch: String
    /// The index of the job within the batch, from 0 to ``Batch/highestIndex``. Two jobs with the same index count as
    /// one. Nil to identify the job by its id.
    public var index: Int?

    /// Creates a membership.
    public init(batch: String, index: Int? = nil) {
        self.batch = batch
        self.index = index
    }
}

/// A set of jobs whose ends are counted. It is complete when as many jobs have ended as its closing message says.
public struct Batch: Hashable, Sendable {
    /// The numbers of jobs that have ended, by outcome. Each job counts once, with its first outcome.
    public struct Counts: Hashable, Sendable {
        /// Jobs with results, including those that show their fallback picture.
        public var ready = 0
        /// Jobs that failed.
        public var failed = 0
        /// Jobs that were cancelled.
        public var cancelled = 0
        /// Jobs that were superseded by newer ones for their display slots.
        public var superseded = 0

        /// Creates counts of zero.
        public init() {}

        /// The number of jobs that have ended.
        public var ended: Int { ready + failed + cancelled + superseded }
    }

    /// The id.
    public var id: String
    /// The tenant that the batch belongs to; nil for none.
    public var tenant: String?
    /// The name of the API key that created it; nil for none.
    public var owner: String?
    /// The time of its creation, in milliseconds since 1970.
    public var created: Int64
    /// The number of jobs; nil while it is open, so that jobs may be added.
    public var total: Int?
    /// The numbers of jobs that have ended.
    public var counts = Counts()
    /// The webhook to which the completion event is delivered; nil for none.
    public var webhook: Webhook?
    /// The S3 URL of the prefix whose objects are the sources of the jobs; nil if producers submit the jobs.
    public var prefix: String?
    /// The preset whose results are made again by the jobs; nil for other batches.
    public var preset: String?
    /// The number of jobs submitted by the worker that lists them, so far.
    public var submitted = 0
    /// The reason why the list of the jobs is incomplete; nil if it is not.
    public var error: BatchError?
    /// The time at which it was cancelled, in milliseconds since 1970; nil if it was not.
    public var cancelled: Int64?
    /// The time at which its last job ended, in milliseconds since 1970; nil before.
    public var completed: Int64?

    /// Creates a batch without jobs.
    public init(id: String, tenant: String? = nil, owner: String? = nil, created: Int64) {
        self.id = id
        self.tenant = tenant
        self.owner = owner
        self.created = created
    }

    /// The state of a batch.
    public enum State: String, CaseIterable, Sendable {
        /// Jobs may be added.
        case open
        /// A worker lists the jobs of a prefix or preset and submits them.
        case listing
        /// All jobs were submitted, and some have not ended.
        case running
        /// It was cancelled, and some jobs have not ended.
        case cancelling
        /// All jobs have ended.
        case completed
    }

    /// The state.
    public var state: State {
        if completed != nil { return .completed }
        if cancelled != nil { return .cancelling }
        if total != nil { return .running }
        return isListed ? .listing : .open
    }

    /// True if a worker lists the jobs.
    public var isListed: Bool { prefix != nil || preset != nil }

    /// True if all jobs have ended.
    public var isDone: Bool { total.map { counts.ended >= $0 } ?? false }

    /// The highest index of a job.
    public static let highestIndex = 9_999_999
    /// The maximum length of an id, in characters.
    public static let longestID = 128

    /// Returns true if the text is a valid id: 1 to 128 of A to Z, a to z, 0 to 9, dot, hyphen, underscore and colon.
    public static func isID(_ text: String) -> Bool {
        (1...longestID).contains(text.utf8.count)
            && text.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"),
                    UInt8(ascii: ":"):
                    true
                default: false
                }
            }
    }
}

/// The reason why a worker could not list all jobs of a batch.
public struct BatchError: Hashable, Sendable {
    /// The error code; see ``JobErrorCode``.
    public var code: String
    /// The error message.
    public var message: String

    /// Creates an error from both values.
    public init(code: String, message: String) {
        self.code = code
        self.message = message
    }

    /// Creates an error from that of a list.
    public init(_ error: JobError) { self.init(code: error.code.rawValue, message: error.message) }
}

/// A list of jobs that a worker submits, and how far it has come.
public struct BatchListing: Hashable, Sendable {
    /// The jobs of a list.
    public enum Contents: Hashable, Sendable {
        /// A job for each object whose key begins with a prefix, which is an S3 URL; see ``S3Prefix``.
        case prefix(String)
        /// The jobs with a preset whose results have not expired: those of a tenant, or all. With `reload`, their
        /// sources are fetched again.
        case preset(String, tenant: String? = nil, reload: Bool = false)
    }

    /// The jobs.
    public var contents: Contents
    /// The fields of all jobs, as a JSON object.
    public var template: [UInt8]
    /// The position after the last job that was listed: the key of its object, or another text that increases in the
    /// order of bytes; nil at the start.
    public var after: String?
    /// The number of jobs that were submitted: the index of the next one.
    public var submitted: Int

    /// Creates a list.
    public init(_ contents: Contents, template: [UInt8], after: String? = nil, submitted: Int = 0) {
        self.contents = contents
        self.template = template
        self.after = after
        self.submitted = submitted
    }
}

/// A message about a batch, on the topic `batches`.
public struct BatchMessage: Hashable, Sendable {
    /// The content of a message.
    public enum Body: Hashable, Sendable {
        /// The batch exists since this time, in milliseconds since 1970. Sent before its first job, or when its first
        /// job ends. The owner applies only in the first message about a batch.
        case open(created: Int64, tenant: String? = nil, owner: String? = nil, webhook: Webhook? = nil)
        /// Jobs are listed from a position on, and submitted.
        case list(BatchListing)
        /// No more jobs are added. The batch has this number of jobs. The error says why a list is incomplete.
        case close(total: Int, error: BatchError? = nil)
        /// All jobs may have ended: their number was reached.
        case counted
        /// The jobs that have not ended are cancelled.
        case cancel
        /// All jobs have ended. The completion event was published with this message.
        case completed(Batch.Counts)
    }

    /// The id of the batch.
    public var batch: String
    /// The content.
    public var body: Body

    /// Creates a message.
    public init(_ batch: String, _ body: Body) {
        self.batch = batch
        self.body = body
    }
}

/// An event about a batch: its progress, or its completion, which is published exactly once.
public struct BatchEvent: Sendable {
    /// The kind of an event: the CloudEvents `type` without the prefix `halcyon.batch.`.
    public enum Kind: String, CaseIterable, Sendable {
        /// Some jobs have ended. Sent at most once per interval.
        case progress
        /// All jobs have ended.
        case completed
    }

    /// The kind.
    public var kind: Kind
    /// The batch at the time of the event.
    public var batch: Batch
    /// The time of the event, in milliseconds since 1970.
    public var time: Int64

    /// Creates an event.
    public init(_ kind: Kind, of batch: Batch, at time: Int64) {
        self.kind = kind
        self.batch = batch
        self.time = time
    }

    /// The unique id of the event.
    public var id: String {
        kind == .completed ? "batch-\(batch.id)-completed" : "batch-\(batch.id)-\(batch.counts.ended)"
    }
}

/// A job of a batch that failed.
public struct BatchFailure: Hashable, Sendable {
    /// The id of the job.
    public var job: String
    /// The index of the job within the batch; nil if it has none.
    public var index: Int?
    /// The error code; see ``JobErrorCode``.
    public var code: String
    /// The error message.
    public var message: String
    /// The position of the job's record: topic, partition and offset, separated by hyphens.
    public var record: String

    /// The maximum length of a message, in characters. Longer ones are cut.
    public static let longestMessage = 500

    /// Creates a failure.
    public init(job: String, index: Int?, code: String, message: String, record: String) {
        self.job = job
        self.index = index
        self.code = code
        self.message = String(message.prefix(Self.longestMessage))
        self.record = record
    }
}
