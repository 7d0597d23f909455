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
