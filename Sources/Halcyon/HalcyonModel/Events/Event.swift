/// An event about a job or about purged results. Each job ends with exactly one terminal event; see
/// ``Kind/isTerminal``.
public struct Event: Sendable {
    /// The kind of an event: the CloudEvents `type` without the prefix `halcyon.image.`.
    public enum Kind: String, CaseIterable, Sendable {
        case started, progress, ready, failed, cancelled, superseded, purged

        /// True if the job ends with this event.
        public var isTerminal: Bool {
            switch self {
            case .ready, .failed, .cancelled, .superseded: true
            case .started, .progress, .purged: false
            }
        }
    }

    /// The content of an event.
    public enum Body: Sendable {
        /// Work on the job started, because its result was not cached.
        case started
        /// The source is being loaded in the given attempt.
        case progress(LoadProgress, attempt: Int)
        /// The results are available.
        case ready(Ready)
        /// The job failed and will not be retried.
        case failed(JobError, attempts: Int, timings: Timings)
        /// The job was cancelled.
        case cancelled
        /// The job was superseded by a job for the same display slot with this higher generation.
        case superseded(by: Int64)
        /// Results were purged. The event belongs to no job.
        case purged(Purged)

        /// The kind of an event with this content.
        public var kind: Kind {
            switch self {
            case .started: .started
            case .progress: .progress
            case .ready: .ready
            case .failed: .failed
            case .cancelled: .cancelled
            case .superseded: .superseded
            case .purged: .purged
            }
        }
    }

    /// The unique id of the event. A redelivered job produces the same id again.
    public var id: String
    /// The time of the event, in seconds since 1970.
    public var time: Double
    /// The source as given in the job; nil if it is unknown, such as for a malformed job.
    public var subject: String?
    /// The job's id; nil for an event without a job.
    public var jobID: String?
    /// The batch that the job belongs to; nil for none.
    public var batch: BatchMembership?
    /// The values that the job passes through.
    public var echo: Job.PassthroughMetadata
    /// The preset of the job, with its version; nil if it has none.
    public var preset: PresetReference?
    /// The W3C trace context of the job.
    public var traceparent: String?
    /// Human-readable warnings about the job, for its terminal event.
    public var warnings: [String]
    /// The webhook to which the event is also delivered. It is not part of the serialized event.
    public var webhook: Webhook?
    /// The content of the event.
    public var body: Body

    /// Creates an event.
    public init(
        id: String, time: Double, subject: String?, jobID: String?,
        batch: BatchMembership? = nil, echo: Job.PassthroughMetadata = Job.PassthroughMetadata(),
        preset: PresetReference? = nil,
        traceparent: String? = nil, warnings: [String] = [], webhook: Webhook? = nil, body: Body
    ) {
        self.id = id
        self.time = time
        self.subject = subject
        self.jobID = jobID
        self.batch = batch
        self.echo = echo
        self.preset = preset
        self.traceparent = traceparent
        self.warnings = warnings
        self.webhook = webhook
        self.body = body
    }

    /// The kind of the event.
    public var kind: Kind { body.kind }

    /// The key of the event's messages: the job's id, or the purged target. Events with the same key are ordered.
    public var key: String? {
        if case .purged(let purged) = body { return purged.name }
        return jobID
    }
}

/// The progress of loading a source.
public struct LoadProgress: Hashable, Sendable {
    /// The number of bytes received.
    public var received: Int
    /// The size of the source in bytes; nil if unknown.
    public var total: Int?

    /// Creates a progress value.
    public init(received: Int, total: Int? = nil) {
        self.received = received
        self.total = total
    }
}

/// The outcome of a job that is ready.
public struct Ready: Sendable {
    /// The results of all variants except those in ``failures``, in the order of the job; none for a prefetch.
    public var results: [ImageResult]
    /// The errors of variants that failed, each with the variant's index; only for jobs that allow partial results.
    public var failures: [JobError]
    /// The cache status; for several results the most expensive one.
    public var origin: CacheStatus
    /// The duration of each stage.
    public var timings: Timings
    /// The number of attempts.
    public var attempts: Int
    /// The alternative source that was used, as in ``Source/shownText``; nil for the source of the job.
    public var alternative: String?
    /// The failure of the job, if the results show its fallback picture instead; nil otherwise.
    public var fallback: JobError?

    /// Creates the outcome of a job that is ready.
    public init(
        results: [ImageResult], failures: [JobError] = [], origin: CacheStatus, timings: Timings, attempts: Int = 1
    ) {
        self.results = results
        self.failures = failures
        self.origin = origin
        self.timings = timings
        self.attempts = attempts
    }

    /// The earliest expiration of the results, in seconds since 1970; nil if one of them is not stored.
    public var expiresAt: Double? {
        var first: Double?
        for result in results {
            guard let moment = result.expiresAt else { return nil }
            first = min(first ?? moment, moment)
        }
        return first
    }
}

/// The result of a variant.
public struct ImageResult: Sendable {
    /// The key in the result tier, even if the result is not stored there.
    public var key: String
    /// The metadata of the output.
    public var facts: ResultMetadata
    /// The expiration in the result tier, in seconds since 1970; nil if the result is not stored.
    public var expiresAt: Double?
    /// The bytes, if they are delivered in the event.
    public var inline: [UInt8]?
    /// The public URL of the file in the result store, if it has one.
    public var url: String?
    /// The name of the variant; nil if it has none.
    public var name: String?
    /// The address of the upload, without parts that may be secret: the URL without its query if a template was
    /// expanded, otherwise scheme, host and port. Nil if the result was not uploaded.
    public var uploadedTo: String?

    /// Creates a result.
    public init(
        key: String, facts: ResultMetadata, expiresAt: Double?, inline: [UInt8]? = nil, name: String? = nil,
        uploadedTo: String? = nil
    ) {
        self.key = key
        self.facts = facts
        self.expiresAt = expiresAt
        self.inline = inline
        self.name = name
        self.uploadedTo = uploadedTo
    }
}

/// The origin of a result.
public enum CacheStatus: String, CaseIterable, Sendable {
    /// A hit in the result tier.
    case memory
    /// A hit in the persistent result store.
    case store
    /// Rendered from a source in the source tier.
    case sourceCache = "source-cache"
    /// Fetched and rendered for this job.
    case network
    /// Rendered for a concurrent job that requested the same result.
    case coalesced
}

/// The metadata of an output, stored with its bytes.
public struct ResultMetadata: Hashable, Sendable {
    /// The width in pixels.
    public var width: Int
    /// The height in pixels.
    public var height: Int
    /// The file format.
    public var format: ImageFormat
    /// The size of the file in bytes.
    public var bytes: Int
    /// The SHA-256 of the file, in lower-case hexadecimal.
    public var sha256: String
    /// The number of frames of an animation; nil for a still image.
    public var frames: Int?
    /// The BlurHash, if the job requested it.
    public var blurhash: String?
    /// The dominant color as `#rrggbb`, if the job requested it.
    public var dominantColor: String?
    /// The part of the upright source that remained when margins were removed; nil if the job did not ask for it.
    public var trim: PixelRect?
    /// The most important colors as `#rrggbb`, the most frequent one first, if the job requested them.
    public var palette: [String]?
    /// The ThumbHash as base64, if the job requested it.
    public var thumbhash: String?
    /// The perceptual hash as 16 hexadecimal digits, if the job requested it.
    public var phash: String?
    /// The faces, the most confident first, if the job requested them.
    public var faces: [DetectedFace]?
    /// The facts about the source as a JSON object, if the variant has ``Variant/info``. The file consists of them.
    public var info: [UInt8]?
    /// The outcome of the search for the size or the quality; nil without one.
    public var encoding: EncodingChoice?
    /// The metadata of the source.
    public var source: SourceMetadata
    /// True if the origin's response or a redirect to it was `private` (RFC 9111, section 5.2.2.7). Shared caches must
    /// not store the output.
    public var isPrivate: Bool

    /// Creates the metadata of an output.
    public init(
        width: Int, height: Int, format: ImageFormat, bytes: Int, sha256: String, frames: Int? = nil,
        blurhash: String? = nil, dominantColor: String? = nil, trim: PixelRect? = nil, palette: [String]? = nil,
        thumbhash: String? = nil, phash: String? = nil, faces: [DetectedFace]? = nil, info: [UInt8]? = nil,
        encoding: EncodingChoice? = nil,
        source: SourceMetadata,
        isPrivate: Bool = false
    ) {
        self.width = width
        self.height = height
        self.format = format
        self.bytes = bytes
        self.sha256 = sha256
        self.frames = frames
        self.blurhash = blurhash
        self.dominantColor = dominantColor
        self.trim = trim
        self.palette = palette
        self.thumbhash = thumbhash
        self.phash = phash
        self.faces = faces
        self.info = info
        self.encoding = encoding
        self.source = source
        self.isPrivate = isPrivate
    }
}

/// The outcome of a search for the size or the quality of a file.
public struct EncodingChoice: Hashable, Codable, Sendable {
    /// The chosen quality, 1 to 100; nil for a lossless file.
    public var quality: Int?
    /// The chosen number of colors of the palette; nil without a palette.
    public var colors: Int?
    /// The similarity to the picture before encoding, at most 1, rounded to six decimals; nil if it was not measured.
    public var similarity: Double?
    /// The number of files that were encoded; 0 if the file of the source was used.
    public var encodings: Int

    /// Creates an outcome.
    public init(quality: Int? = nil, colors: Int? = nil, similarity: Double? = nil, encodings: Int) {
        self.quality = quality
        self.colors = colors
        self.similarity = similarity.map { ($0 * 1_000_000).rounded() / 1_000_000 }
        self.encodings = encodings
    }

    /// A text such as `quality 62, similarity 0.981, 7 encodings`.
    public var summary: String {
        let parts = [
            quality.map { "quality \($0)" }, colors.map { "\($0) colors" }, similarity.map { "similarity \($0)" },
            encodings == 1 ? "1 encoding" : "\(encodings) encodings",
        ]
        return parts.compactMap(\.self).joined(separator: ", ")
    }
}

/// The metadata of a source.
public struct SourceMetadata: Hashable, Sendable {
    /// The HTTP status of the response; nil for other sources.
    public var status: Int?
    /// The entity tag of the response, as received.
    public var etag: String?
    /// The size of the source in bytes.
    public var bytes: Int
    /// The file format.
    public var format: ImageFormat
    /// The width in pixels, after auto-rotation.
    public var width: Int
    /// The height in pixels, after auto-rotation.
    public var height: Int
    /// True if the file is truncated and its available part was rendered.
    public var isTruncated: Bool

    /// Creates the metadata of a source.
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

/// The outcome of a purge, as published in its event.
public struct Purged: Hashable, Sendable {
    /// The purged target.
    public enum Target: Hashable, Sendable {
        /// A source, by its text.
        case source(String)
        /// A tag.
        case tag(String)
        /// A result's key.
        case key(String)
        /// A tenant.
        case tenant(String)
    }

    /// The purged target.
    public var target: Target
    /// The tenant that owned the results; nil for results without a tenant.
    public var tenant: String?
    /// The number of purged results.
    public var count: Int
    /// The tags by which shared caches find responses with these results.
    public var cacheTags: [String]

    /// Creates the outcome of a purge. The target ``Target/tenant(_:)`` names the tenant itself.
    public init(_ target: Target, of tenant: String? = nil, count: Int, cacheTags: [String] = []) {
        self.target = target
        self.tenant = if case .tenant(let name) = target { name } else { tenant }
        self.count = count
        self.cacheTags = cacheTags
    }

    /// Creates the outcome of a purge that removed `count` results.
    public init(_ purge: Purge, count: Int, cacheTags: [String] = []) {
        let target: Target =
            switch purge.target {
            case .source(let source): .source(source.shownText)
            case .tag(let tag): .tag(tag)
            case .key(let key): .key(key.description)
            case .tenant(let tenant): .tenant(tenant)
            }
        self.init(target, of: purge.tenant, count: count, cacheTags: cacheTags)
    }

    /// The text of the target.
    public var name: String {
        switch target {
        case .source(let name), .tag(let name), .key(let name), .tenant(let name): name
        }
    }
}
