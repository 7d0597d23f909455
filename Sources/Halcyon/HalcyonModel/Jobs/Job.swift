/// A fetch-and-size job, read and checked. It goes down the line once.
public struct Job: Sendable {
    /// The producer's name for it, or topic-partition-offset; at most 128 characters.
    public var id: String
    /// What to load.
    public var source: Source
    /// What to make of it: at least one output, in the order of the event.
    public var variants: [Variant]
    /// Whether it is ready with the outputs that can be made where others cannot; else one that fails fails the job.
    public var partial: Bool
    /// Seconds; see ``ResultRule``.
    public var maxAge: Double
    /// Which tiers it uses.
    public var cache: CacheUse
    /// Whose results these are; nil for those of nobody in particular.
    public var tenant: String?
    /// What is added to the requests for the source.
    public var headers: RequestHeaders
    /// Words that its results can be purged by, each once.
    public var tags: [String]
    /// The place that its image is for, if a later job for that supersedes it.
    public var slot: Slot?
    /// How the result reaches the consumer.
    public var delivery: Delivery
    /// When the job is no longer wanted.
    public var deadline: Deadline?
    /// Where its end is told besides the topic of events.
    public var webhook: Webhook?
    /// What events give back untouched.
    public var echo: Echo

    /// Takes the values as they are.
    public init(
        id: String, source: Source, variants: [Variant], partial: Bool = false, maxAge: Double = 0,
        cache: CacheUse = CacheUse(), tenant: String? = nil, headers: RequestHeaders = RequestHeaders(),
        tags: [String] = [], slot: Slot? = nil,
        delivery: Delivery = .reference, deadline: Deadline? = nil, webhook: Webhook? = nil, echo: Echo = Echo()
    ) {
        self.id = id
        self.source = source
        self.variants = variants
        self.partial = partial
        self.maxAge = maxAge
        self.cache = cache
        self.tenant = tenant
        self.headers = headers
        self.tags = tags
        self.slot = slot
        self.delivery = delivery
        self.deadline = deadline
        self.webhook = webhook
        self.echo = echo
    }

    /// What is asked of the source's origin.
    public var request: SourceRequest { SourceRequest(source, tenant: tenant, headers: headers) }

    /// Characters of the longest id.
    public static let longestID = 128

    /// Whether a text can be an id: 1 to 128 characters of Unicode, and not U+0000, at which a text ends for much else.
    public static func isID(_ text: String) -> Bool {
        // No more bytes than that are no more characters, and bytes are counted at once.
        !text.isEmpty && (text.utf8.count <= longestID || text.unicodeScalars.count <= longestID)
            && !text.utf8.contains(0)
    }

    /// Characters of the longest tenant's name.
    public static let longestTenant = 64

    /// Whether a text can name a tenant: 1 to 64 of A to Z, a to z, 0 to 9, dot, hyphen and underscore.
    public static func isTenant(_ name: String) -> Bool {
        (1...longestTenant).contains(name.utf8.count)
            && name.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"):
                    true
                default: false
                }
            }
    }

    /// How a result is handed over.
    public enum Delivery: Hashable, Sendable {
        /// By its key in the result tier.
        case reference
        /// In the event, as base64, and by key where it is stored.
        case inline
        /// By HTTP PUT at this URL, of a job with one output, and by key where it is stored. The URL may be a secret.
        case put(WebURL)

        /// The ways that a word names.
        public enum Word: String, CaseIterable, Sendable {
            /// As above.
            case reference, inline

            /// What it names.
            public var delivery: Delivery {
                switch self {
                case .reference: .reference
                case .inline: .inline
                }
            }
        }

        /// Whether who delivers needs the bytes.
        public var wantsBytes: Bool { self != .reference }

        /// Whether it is put somewhere, however large: the event need not have room for it.
        public var isPut: Bool { if case .put = self { true } else { false } }
    }

    /// When a job is no longer wanted.
    public enum Deadline: Hashable, Sendable {
        /// At this moment, in seconds since 1970.
        case at(Double)
        /// This many seconds after the job was written to its topic.
        case after(Double)

        /// In seconds since 1970, for a job written at `submitted`.
        public func moment(submitted: Double) -> Double {
            switch self {
            case .at(let moment): moment
            case .after(let seconds): submitted + seconds
            }
        }
    }

    /// Values that pass through: JSON texts, each at most 16 KiB.
    public struct Echo: Hashable, Sendable {
        /// Bytes of the longest value taken.
        public static let longest = 16 << 10
        /// Any JSON.
        public var metadata: [UInt8]?
        /// Any JSON.
        public var placeholder: [UInt8]?
        /// Any JSON.
        public var altText: [UInt8]?

        /// Takes the texts as they are.
        public init(metadata: [UInt8]? = nil, placeholder: [UInt8]? = nil, altText: [UInt8]? = nil) {
            self.metadata = metadata
            self.placeholder = placeholder
            self.altText = altText
        }
    }
}

extension Job {
    /// A place that shows one image at a time, such as a cell of a table: of the jobs for it only the newest is wanted.
    public struct Slot: Hashable, Sendable {
        /// Bytes of the longest name.
        public static let longestName = 256
        /// The highest generation: what every JSON reader takes for a whole number.
        public static let highestGeneration: Int64 = 1 << 53

        /// Which place of the tenant's.
        public var name: String
        /// Which of the jobs for it is newer: the one of the higher number. nil for the time of submission.
        public var generation: Int64?

        /// Takes the values as they are.
        public init(name: String, generation: Int64? = nil) {
            self.name = name
            self.generation = generation
        }

        /// The generation of a job written at `submitted`, in seconds since 1970: unless given that time in milliseconds.
        public func generation(submitted: Double) -> Int64 {
            generation ?? Int64(max(0, min((submitted * 1000).rounded(), Double(Self.highestGeneration))))
        }
    }

    /// Tags of one job at most.
    public static let mostTags = 32
    /// Bytes of the longest tag.
    public static let longestTag = 128

    /// Whether a text can be a tag: 1 to 128 bytes of UTF-8, none of them a control character.
    public static func isTag(_ text: String) -> Bool {
        (1...longestTag).contains(text.utf8.count) && text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7f }
    }
}

/// A priority, chosen by the topic a job is written to.
public enum Lane: String, CaseIterable, Sendable {
    /// Before everything else.
    case high
    /// The usual one.
    case normal
    /// When there is time.
    case low

    /// How urgent it is: 0 for the most urgent.
    public var level: Int {
        switch self {
        case .high: 0
        case .normal: 1
        case .low: 2
        }
    }

    /// The topic of the lane behind the configured prefix: `jobs.high`, `jobs`, `jobs.low`.
    public var topic: String { self == .normal ? "jobs" : "jobs.\(rawValue)" }
}

/// Which tiers a job uses, and how.
public struct CacheUse: Hashable, Sendable {
    /// Whether results are kept in the result tier and looked for there.
    public var memory = true
    /// Whether sources are kept in the source tier and looked for there.
    public var source = true
    /// Whether everything is fetched and made anew, whatever is there; it is kept all the same.
    public var reload = false
    /// Whether the job is content with what is there, results or sources: no origin is asked for anything.
    public var onlyIfCached = false

    /// All tiers, and neither a fetch forced nor one forbidden.
    public init() {}

    /// Whether the result tier is looked at.
    public var looksAtResults: Bool { memory && !reload }
}

/// What of a damaged source is rendered all the same.
public enum Tolerance: String, CaseIterable, Codable, Sendable {
    /// Nothing: damage is a failure.
    case strict
    /// What there is of a JPEG, PNG or GIF that ends too early.
    case truncated
}
