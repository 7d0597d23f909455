import Foundation

/// A job, as the schema of jobs has it: what to load, and what to make of it. What is nil has the schema's default.
public struct ImageJob: Sendable, Equatable, Encodable {
    /// What to load.
    public var source: ImageSource
    /// The only output, or what all of ``variants`` have in common.
    public var output: ImageOutput
    /// Several outputs of the one source; at most 16.
    public var variants: [ImageOutput]?
    /// Whether the job is ready with the variants that can be made, where others cannot. false unless set.
    public var partial: Bool?
    /// The job's name, of at most 128 bytes. Without one the client makes one up, so that a request may be sent again.
    public var id: String?
    /// Seconds for which the result is kept: above 0 whatever the origin says, 0 as it says, below 0 not at all.
    public var maxAge: Double?
    /// Which tiers are used.
    public var cache: Cache?
    /// How the bytes are handed over.
    public var delivery: Delivery?
    /// The lane.
    public var priority: Priority?
    /// Until when it is wanted.
    public var deadline: Deadline?
    /// The place that the image is for: of the jobs for one place only the newest is done.
    public var slot: String?
    /// Which of the jobs for a slot is newer.
    public var generation: Int?
    /// Given back in events, at most 16 KiB each.
    public var placeholder, altText, metadata: JSONValue?
    /// What results can be purged by.
    public var tags: [String]?
    /// A URL, or a name of the workers' settings, where the end is told as well.
    public var webhook: String?
    /// Header fields of the requests for the source.
    public var headers: [String: String]?
    /// Whose results these are.
    public var tenant: String?

    /// Which tiers are used.
    public struct Cache: Sendable, Equatable, Encodable {
        /// Stored results; stored sources. true unless set.
        public var memory, source: Bool?
        /// All is made anew; nothing is asked of an origin. false unless set, and not both.
        public var reload, onlyIfCached: Bool?

        /// As the schema has it, but for what is given.
        public init(memory: Bool? = nil, source: Bool? = nil, reload: Bool? = nil, onlyIfCached: Bool? = nil) {
            (self.memory, self.source, self.reload, self.onlyIfCached) = (memory, source, reload, onlyIfCached)
        }
    }

    /// Where the bytes are.
    public enum Delivery: Sendable, Equatable, Encodable {
        /// Under the key that the event names; in the event.
        case reference, inline
        /// Put by HTTP at this URL, of a job with one output, before the event says that they are ready.
        case put(URL)

        /// As a job has it.
        public func encode(to encoder: any Encoder) throws {
            switch self {
            case .reference: try "reference".encode(to: encoder)
            case .inline: try "inline".encode(to: encoder)
            case .put(let url): try ["put": url.absoluteString].encode(to: encoder)
            }
        }
    }

    /// A lane.
    public enum Priority: String, Sendable, Codable {
        /// The lanes.
        case high, normal, low
    }

    /// Until when a job is wanted.
    public enum Deadline: Sendable, Equatable, Encodable {
        /// Seconds after it was taken.
        case after(Double)
        /// A moment.
        case at(Date)

        /// As a job has it.
        public func encode(to encoder: any Encoder) throws {
            switch self {
            case .after(let seconds): try JSONValue.number(seconds).encode(to: encoder)
            case .at(let date): try JSONValue.string(date.formatted(.iso8601)).encode(to: encoder)
            }
        }
    }

    /// A job for one output of this size; everything else is set as a property.
    public init(
        _ source: ImageSource, width: Double? = nil, height: Double? = nil, screenScale: Double? = nil,
        contentMode: ContentMode? = nil, processors: [Processor]? = nil, format: ImageFormat? = nil
    ) {
        self.init(
            source,
            ImageOutput(
                width: width, height: height, screenScale: screenScale, contentMode: contentMode,
                processors: processors, format: format))
    }

    /// A job for one output, or for several that have this in common.
    public init(_ source: ImageSource, _ output: ImageOutput, variants: [ImageOutput]? = nil) {
        (self.source, self.output, self.variants) = (source, output, variants)
    }

    private enum CodingKeys: String, CodingKey {
        case source, variants, partial, id, maxAge, cache, delivery, priority, deadline, slot, generation, placeholder,
            altText
        case metadata, tags, webhook, headers, tenant
    }

    /// As the schema of jobs has it: the output's fields stand in the job itself.
    public func encode(to encoder: any Encoder) throws {
        try output.encode(to: encoder)
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(source, forKey: .source)
        try container.encodeIfPresent(variants, forKey: .variants)
        try container.encodeIfPresent(partial, forKey: .partial)
        try container.encodeIfPresent(id, forKey: .id)
        try container.encodeIfPresent(maxAge, forKey: .maxAge)
        try container.encodeIfPresent(cache, forKey: .cache)
        try container.encodeIfPresent(delivery, forKey: .delivery)
        try container.encodeIfPresent(priority, forKey: .priority)
        try container.encodeIfPresent(deadline, forKey: .deadline)
        try container.encodeIfPresent(slot, forKey: .slot)
        try container.encodeIfPresent(generation, forKey: .generation)
        try container.encodeIfPresent(placeholder, forKey: .placeholder)
        try container.encodeIfPresent(altText, forKey: .altText)
        try container.encodeIfPresent(metadata, forKey: .metadata)
        try container.encodeIfPresent(tags, forKey: .tags)
        try container.encodeIfPresent(webhook, forKey: .webhook)
        try container.encodeIfPresent(headers, forKey: .headers)
        try container.encodeIfPresent(tenant, forKey: .tenant)
    }
}
