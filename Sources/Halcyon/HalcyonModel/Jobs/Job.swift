/// A validated job: one source to load and the variants to render from it.
public struct Job: Sendable {
    /// The id given by the producer, or topic-partition-offset; at most 128 characters.
    public var id: String
    /// The source to load.
    public var source: Source
    /// The sources to try in this order if ``source`` cannot be loaded or decoded; at most ``mostAlternatives``.
    public var alternatives: [Source]
    /// The picture to deliver when the job would fail otherwise; nil for none. Its result has the key of this source.
    public var fallback: Source?
    /// The outputs to render, in the order of the event; at least one, except for a prefetch.
    public var variants: [Variant]
    /// The names of the variants, in their order; empty if no variant has a name.
    public var names: [String?]
    /// True if the job succeeds when at least one variant succeeds. Otherwise the failure of a variant fails the job.
    public var partial: Bool
    /// The requested TTL of results in seconds; see ``ResultTTLPolicy``.
    public var maxAge: Double
    /// The cache tiers that the job uses.
    public var cache: CachePolicy
    /// The tenant that owns the results; nil for results without a tenant.
    public var tenant: String?
    /// The header fields that are added to requests for the source.
    public var headers: RequestHeaders
    /// The tags by which the results can be purged, without duplicates.
    public var tags: [String]
    /// The display slot of the image. A newer job for the same slot supersedes this one.
    public var slot: DisplaySlot?
    /// The delivery method of the result.
    public var delivery: Delivery
    /// True if the job only loads its source into the source cache. It has no variants.
    public var isPrefetch: Bool
    /// The rule by which the results are rendered again while they are asked for; nil to let them expire.
    public var refresh: Refresh?
    /// The time before which the job does not start; nil to start at once.
    public var notBefore: Time?
    /// The deadline of the job; nil if it has none.
    public var deadline: Time?
    /// The batch that the job belongs to; nil for none.
    public var batch: BatchMembership?
    /// The webhook to which the terminal event is delivered, in addition to the topic of events.
    public var webhook: Webhook?
    /// The values that are copied unchanged into events.
    public var echo: PassthroughMetadata
    /// The preset that the job was expanded from, with its version; nil for a job without one.
    public var preset: PresetReference?

    /// Creates a job without validating the values.
    public init(
        id: String, source: Source, alternatives: [Source] = [], fallback: Source? = nil, variants: [Variant],
        names: [String?] = [], partial: Bool = false, maxAge: Double = 0,
        cache: CachePolicy = CachePolicy(), tenant: String? = nil, headers: RequestHeaders = RequestHeaders(),
        tags: [String] = [], slot: DisplaySlot? = nil,
        delivery: Delivery = .reference, isPrefetch: Bool = false, refresh: Refresh? = nil, notBefore: Time? = nil,
        deadline: Time? = nil, batch: BatchMembership? = nil, webhook: Webhook? = nil,
        echo: PassthroughMetadata = PassthroughMetadata(), preset: PresetReference? = nil
    ) {
        self.id = id
        self.source = source
        self.alternatives = alternatives
        self.fallback = fallback
        self.variants = variants
        self.names = names
        self.partial = partial
        self.maxAge = maxAge
        self.cache = cache
        self.tenant = tenant
        self.headers = headers
        self.tags = tags
        self.slot = slot
        self.delivery = delivery
        self.isPrefetch = isPrefetch
        self.refresh = refresh
        self.notBefore = notBefore
        self.deadline = deadline
        self.batch = batch
        self.webhook = webhook
        self.echo = echo
        self.preset = preset
    }

    /// The request for the source.
    public var request: SourceRequest { SourceRequest(source, tenant: tenant, headers: headers) }

    /// Returns the job with another source and no alternatives or fallback. Its requests have the header fields of the
    /// job only if the source has the same origin (RFC 6454, section 4), because they may contain credentials.
    public func using(_ other: Source) -> Job {
        var job = self
        if source.origin == nil || other.origin != source.origin { job.headers = RequestHeaders() }
        (job.source, job.alternatives, job.fallback) = (other, [], nil)
        return job
    }

    /// Calls `body` for the job's own source and, while sources fail, for its alternatives in order.
    /// - Parameter body: The work on one source. Its argument is the index of the alternative; nil for the job's own
    ///   source.
    /// - Returns: The value for the first source that does not fail.
    /// - Throws: ``JobError`` if all sources fail: the first failure that a retry may fix, otherwise that of the job's
    ///   own source. Errors that are not about the source are rethrown.
    public func firstSource<Value>(
        _ body: (_ alternative: Int?) async throws -> Value
    ) async throws -> Value {
        var sources: [Int?] = [nil]
        sources += alternatives.indices.map { Optional($0) }
        var failures: [JobError] = []
        for alternative in sources {
            do {
                return try await body(alternative)
            } catch let error as JobError where error.code.isOfSource && !alternatives.isEmpty {
                failures.append(alternative.map { error.within("alternatives[\($0)]") } ?? error)
            }
        }
        var failure = failures.first(where: \.isRetryable) ?? failures[0]
        let others = failures.dropFirst().map { $0.code.rawValue }.joined(separator: ", ")
        failure.message += "; no alternative source succeeded (\(others))"
        throw failure
    }

    /// Returns the job that renders the results again from a new response, and reports to nobody in particular.
    /// - Parameter id: The id of the new job.
    public func refreshing(as id: String) -> Job {
        var job = self
        job.id = id
        job.cache.reload = true
        (job.fallback, job.slot, job.batch, job.webhook, job.notBefore, job.deadline) = (nil, nil, nil, nil, nil, nil)
        job.delivery = .reference
        job.echo = PassthroughMetadata()
        return job
    }

    /// The maximum number of alternative sources of a job.
    public static let mostAlternatives = 8

    /// Returns the name of a variant; nil if it has none.
    public func name(ofVariant index: Int) -> String? { names.indices.contains(index) ? names[index] : nil }

    /// The name of each variant, or its index if it has no name. Labels are unique.
    public var labels: [String] { variants.indices.map { name(ofVariant: $0) ?? "\($0)" } }

    /// Returns true if the text is a valid name of a variant: 1 to 64 letters, digits, dots, hyphens and underscores,
    /// the first of them a letter or a digit.
    public static func isVariantName(_ name: String) -> Bool {
        guard isTenant(name), let first = name.utf8.first else { return false }
        return first != UInt8(ascii: ".") && first != UInt8(ascii: "-") && first != UInt8(ascii: "_")
    }

    /// The maximum length of an id, in characters.
    public static let longestID = 128

    /// Returns true if the text is a valid id: 1 to 128 Unicode scalars without U+0000, which terminates C strings.
    public static func isID(_ text: String) -> Bool {
        // The byte count is available in constant time, and it is never below the number of scalars.
        !text.isEmpty && (text.utf8.count <= longestID || text.unicodeScalars.count <= longestID)
            && !text.utf8.contains(0)
    }

    /// The maximum length of a tenant's name, in characters.
    public static let longestTenant = 64

    /// Returns true if the text is a valid tenant name: 1 to 64 of A to Z, a to z, 0 to 9, dot, hyphen and underscore.
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

    /// The delivery method of a result.
    public enum Delivery: Hashable, Sendable {
        /// The event contains the result's key in the result tier.
        case reference
        /// The event contains the bytes as base64, and the key if the result is stored.
        case inline
        /// The results are uploaded by HTTP PUT; the event contains the key of each result that is stored.
        case put(UploadTargets)

        /// The delivery methods that have no parameters.
        public enum Word: String, CaseIterable, Sendable {
            /// The methods of ``Job/Delivery`` with the same names.
            case reference, inline

            /// The delivery method of this name.
            public var delivery: Delivery {
                switch self {
                case .reference: .reference
                case .inline: .inline
                }
            }
        }

        /// True if the delivery requires the bytes of the result.
        public var wantsBytes: Bool { self != .reference }

        /// True if the result is uploaded. The size limit of events does not apply.
        public var isPut: Bool { if case .put = self { true } else { false } }
    }

    /// The time at which results are rendered again, if a job has asked for them since they were rendered.
    public enum Refresh: Hashable, Sendable {
        /// Shortly before the first of them expires.
        case beforeExpiry
        /// After a number of seconds, or before they expire if that is earlier.
        case every(Double)

        /// The range of intervals in seconds: ten seconds to one year.
        public static let intervals = 10.0...31_536_000.0
    }

    /// A time in the field of a job.
    public enum Time: Hashable, Sendable {
        /// An absolute time, in seconds since 1970.
        case at(Double)
        /// A number of seconds after another time.
        case after(Double)

        /// Returns the time in seconds since 1970.
        /// - Parameter start: The time to which a number of seconds is added.
        public func moment(from start: Double) -> Double {
            switch self {
            case .at(let moment): moment
            case .after(let seconds): start + seconds
            }
        }
    }

    /// Returns the time from which the job may start, in seconds since 1970.
    /// - Parameter submitted: The time at which it was written to its topic.
    public func start(submitted: Double) -> Double {
        max(submitted, notBefore?.moment(from: submitted) ?? submitted)
    }

    /// Returns the time at which the job expires, in seconds since 1970; nil if it has no deadline. A number of seconds
    /// counts from the ``start(submitted:)``.
    public func end(submitted: Double) -> Double? { deadline?.moment(from: start(submitted: submitted)) }

    /// JSON values that are copied unchanged from a job to its events, each at most 16 KiB.
    public struct PassthroughMetadata: Hashable, Sendable {
        /// The maximum size of a value, in bytes.
        public static let longest = 16 << 10
        /// An arbitrary JSON value.
        public var metadata: [UInt8]?
        /// An arbitrary JSON value.
        public var placeholder: [UInt8]?
        /// An arbitrary JSON value.
        public var altText: [UInt8]?

        /// Creates metadata from JSON texts without validating them.
        public init(metadata: [UInt8]? = nil, placeholder: [UInt8]? = nil, altText: [UInt8]? = nil) {
            self.metadata = metadata
            self.placeholder = placeholder
            self.altText = altText
        }
    }
}

extension Job {
    /// A place that shows one image at a time, such as a table cell. Only the newest job for a slot is needed.
    public struct DisplaySlot: Hashable, Sendable {
        /// The maximum length of a name, in bytes.
        public static let longestName = 256
        /// The highest generation, 2^53. All JSON parsers represent integers up to it exactly.
        public static let highestGeneration: Int64 = 1 << 53

        /// The name of the slot, unique within the tenant.
        public var name: String
        /// The generation of the job. Jobs with a higher generation supersede those with a lower one. Nil to use the
        /// time of submission.
        public var generation: Int64?

        /// Creates a display slot.
        public init(name: String, generation: Int64? = nil) {
            self.name = name
            self.generation = generation
        }

        /// Returns the generation of a job written at `submitted`, in seconds since 1970. The default is that time in
        /// milliseconds.
        public func generation(submitted: Double) -> Int64 {
            generation ?? Int64(max(0, min((submitted * 1000).rounded(), Double(Self.highestGeneration))))
        }
    }

    /// The maximum number of tags of a job.
    public static let mostTags = 32
    /// The maximum length of a tag, in bytes.
    public static let longestTag = 128

    /// Returns true if the text is a valid tag: 1 to 128 bytes of UTF-8 without control characters.
    public static func isTag(_ text: String) -> Bool {
        (1...longestTag).contains(text.utf8.count) && text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7f }
    }
}

/// The priority of a job, determined by its topic.
public enum Lane: String, CaseIterable, Sendable {
    /// The highest priority.
    case high
    /// The default priority.
    case normal
    /// The lowest priority, for background work.
    case low

    /// The priority as a number; 0 is the highest.
    public var level: Int {
        switch self {
        case .high: 0
        case .normal: 1
        case .low: 2
        }
    }

    /// The lane's topic without the configured prefix: `jobs.high`, `jobs` or `jobs.low`.
    public var topic: String { self == .normal ? "jobs" : "jobs.\(rawValue)" }
}

/// The use of the cache tiers by a job.
public struct CachePolicy: Hashable, Sendable {
    /// True if results are read from and stored in the result tier.
    public var memory = true
    /// The use of the persistent result store, if there is one.
    public var store = StoreUse.allowed
    /// True if sources are read from and stored in the source tier.
    public var source = true
    /// True if cached data is ignored, and everything is fetched and rendered again. The new results are stored.
    public var reload = false
    /// True if only cached results and sources are used. No request is sent to an origin.
    public var onlyIfCached = false

    /// Creates a policy that uses all tiers.
    public init() {}

    /// True if the result tier is read.
    public var looksAtResults: Bool { memory && !reload }

    /// The use of the result store by a job.
    public enum StoreUse: String, CaseIterable, Sendable {
        /// Results are read from the store, and written to it after the event.
        case allowed
        /// The store is not used.
        case excluded
        /// The event follows when the results are durable in the store.
        case required
    }
}

/// The handling of damaged sources.
public enum Tolerance: String, CaseIterable, Codable, Sendable {
    /// Damage is an error.
    case strict
    /// The available part of a truncated JPEG, PNG, GIF or BMP is rendered.
    case truncated
}

/// A preset by its name and version. In a job it requests this version or a newer one, in an event it names the version
/// that was used.
public struct PresetReference: Hashable, Sendable {
    /// The highest version, 2^53. All JSON parsers represent integers up to it exactly.
    public static let highestVersion: Int64 = 1 << 53

    /// The name of the preset.
    public var name: String
    /// The version, from 1; nil in a job that accepts any version.
    public var version: Int64?

    /// Creates a reference without validating the values.
    /// - Parameters:
    ///   - name: The name of the preset.
    ///   - version: The version; nil for any.
    public init(_ name: String, version: Int64? = nil) {
        self.name = name
        self.version = version
    }

    /// Returns true if the text is a valid name of a preset: 1 to 64 letters, digits, dots, hyphens and underscores,
    /// the first of them a letter or a digit, as in names of variants. `only` is reserved for the setting
    /// `presets.only`.
    public static func isName(_ text: String) -> Bool { Job.isVariantName(text) && text != "only" }
}
