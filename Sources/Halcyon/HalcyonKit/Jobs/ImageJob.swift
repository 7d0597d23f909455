import Foundation

/// A job: an image to load and the outputs to make of it. Properties that are nil have the defaults of the job schema.
public struct ImageJob: Sendable, Hashable, Encodable {
    /// The image to load.
    public var source: Source
    /// The images to load, in this order, if ``source`` fails; at most 8.
    public var alternatives: [Source]?
    /// The picture to deliver if all of them fail; nil for the cluster's setting.
    public var fallback: Fallback?
    /// The only output, or the fields that all ``variants`` have in common.
    public var output: Output
    /// Several outputs of one source; at most 16.
    public var variants: [Output]?
    /// True if the job is ready with the variants that can be made when others fail. Default: false.
    public var partial: Bool?
    /// The job's name, at most 128 characters. The client generates one if it is nil, so that it can retry requests.
    public var id: String?
    /// Seconds for which the result is stored. 0 follows the response's own freshness; below 0 nothing is stored.
    public var maxAge: Double?
    /// The caches that the job uses.
    public var cache: Cache?
    /// The way in which the bytes are delivered.
    public var delivery: Delivery?
    /// The lane.
    public var priority: Priority?
    /// True to load the source into the source cache only. No image is made.
    public var prefetch: Bool?
    /// The time at which the job starts at the earliest.
    public var notBefore: Time?
    /// The time after which the job is no longer wanted.
    public var deadline: Time?
    /// The place in which the image is shown. Of several jobs for one slot, only the newest is done.
    public var slot: String?
    /// The order of the jobs for one slot: a higher number is newer.
    public var generation: Int?
    /// Values that events return unchanged; at most 16 KiB each.
    public var placeholder, altText, metadata: JSONValue?
    /// Tags by which the results can be purged.
    public var tags: [String]?
    /// A URL, or a name from the workers' settings, that is called when the job ends.
    public var webhook: String?
    /// Header fields for the requests for the source.
    public var headers: [String: String]?
    /// The tenant that owns the results.
    public var tenant: String?
    /// The preset whose fields the job has. ``output`` then contains only fields that the preset allows.
    public var preset: String?

    /// Creates a job with one output. Everything else is set as a property.
    public init(
        _ source: Source, width: Double? = nil, height: Double? = nil, screenScale: Double? = nil,
        contentMode: ContentMode? = nil, processors: [Processor]? = nil, format: Format? = nil
    ) {
        self.init(
            source,
            Output(
                width: width, height: height, screenScale: screenScale, contentMode: contentMode,
                processors: processors, format: format))
    }

    /// Creates a job with one output, or with several that have `output` in common.
    public init(_ source: Source, _ output: Output, variants: [Output]? = nil) {
        (self.source, self.output, self.variants) = (source, output, variants)
    }

    private enum CodingKeys: String, CodingKey {
        case source, alternatives, fallback, variants, partial, id, maxAge, cache, delivery, priority, prefetch,
            notBefore,
            deadline, slot, generation
        case placeholder, altText, metadata, tags, webhook, headers, tenant, preset
    }

    /// Encodes the job as its schema defines it: the fields of ``output`` are members of the job itself.
    public func encode(to encoder: any Encoder) throws {
        try output.encode(to: encoder)
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(source, forKey: .source)
        try container.encodeIfPresent(alternatives, forKey: .alternatives)
        try container.encodeIfPresent(fallback, forKey: .fallback)
        try container.encodeIfPresent(variants, forKey: .variants)
        try container.encodeIfPresent(partial, forKey: .partial)
        try container.encodeIfPresent(id, forKey: .id)
        try container.encodeIfPresent(maxAge, forKey: .maxAge)
        try container.encodeIfPresent(cache, forKey: .cache)
        try container.encodeIfPresent(delivery, forKey: .delivery)
        try container.encodeIfPresent(priority, forKey: .priority)
        try container.encodeIfPresent(prefetch, forKey: .prefetch)
        try container.encodeIfPresent(notBefore, forKey: .notBefore)
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
        try container.encodeIfPresent(preset, forKey: .preset)
    }
}

extension ImageJob {
    /// The caches that a job uses.
    public struct Cache: Sendable, Hashable, Codable {
        /// Use of stored results, and of stored sources. Default: true.
        public var memory, source: Bool?
        /// Use of the persistent result store. Default: allowed.
        public var store: StoreUse?
        /// `reload` ignores what is stored; `onlyIfCached` sends no request to an origin. Default: false; not both.
        public var reload, onlyIfCached: Bool?

        /// Creates the defaults, except for the arguments.
        public init(
            memory: Bool? = nil, store: StoreUse? = nil, source: Bool? = nil, reload: Bool? = nil,
            onlyIfCached: Bool? = nil
        ) {
            (self.memory, self.store, self.source) = (memory, store, source)
            (self.reload, self.onlyIfCached) = (reload, onlyIfCached)
        }

        /// The use of the result store by a job.
        public struct StoreUse: RawRepresentable, Sendable, Hashable, Codable {
            /// The value in the job's JSON.
            public let rawValue: JSONValue
            /// Creates a value that has no static member here.
            public init(rawValue: JSONValue) { self.rawValue = rawValue }

            /// Results are written after the event, or not at all.
            public static let allowed = Self(rawValue: true), excluded = Self(rawValue: false)
            /// The event follows when the results are durable.
            public static let required = Self(rawValue: "required")
        }
    }

    /// The way in which the bytes of a result are delivered.
    public struct Delivery: RawRepresentable, Sendable, Hashable, Codable {
        /// The value in the job's JSON.
        public let rawValue: JSONValue
        /// Creates a value that has no static member here.
        public init(rawValue: JSONValue) { self.rawValue = rawValue }

        /// Under the key in the event, or in the event itself.
        public static let reference = Self(rawValue: "reference"), inline = Self(rawValue: "inline")
        /// By an HTTP PUT to this URL before the `ready` event; for jobs with one output.
        public static func put(_ url: URL) -> Self { Self(rawValue: ["put": .string(url.absoluteString)]) }
        /// By HTTP PUTs to the URLs that a template such as `https://example.org/items/7/{variant}.{format}` expands
        /// to. Placeholders are `variant`, `index`, `width`, `height`, `format` and `key`.
        public static func put(template: String) -> Self { Self(rawValue: ["put": .string(template)]) }
        /// By an HTTP PUT of each variant to its URL. The keys are the names of all variants; a variant without a name
        /// has its index.
        public static func put(_ urls: [String: URL]) -> Self {
            Self(rawValue: ["put": .object(urls.mapValues { .string($0.absoluteString) })])
        }
    }

    /// The picture that a job delivers if it fails.
    public struct Fallback: RawRepresentable, Sendable, Hashable, Codable {
        /// The value in the job's JSON.
        public let rawValue: JSONValue
        /// Creates a value that has no static member here.
        public init(rawValue: JSONValue) { self.rawValue = rawValue }

        /// No picture: the job fails, regardless of the cluster's setting.
        public static let none = Self(rawValue: false)
        /// This picture.
        public static func source(_ source: Source) -> Self { Self(rawValue: source.rawValue) }
    }

    /// The time at which a job starts or ends.
    public struct Time: RawRepresentable, Sendable, Hashable, Codable {
        /// The value in the job's JSON.
        public let rawValue: JSONValue
        /// Creates a value that has no static member here.
        public init(rawValue: JSONValue) { self.rawValue = rawValue }

        /// A number of seconds after the job was accepted, or, for a deadline, after ``ImageJob/notBefore``.
        public static func after(_ seconds: Double) -> Self { Self(rawValue: .number(seconds)) }
        /// A moment, to the second.
        public static func at(_ date: Date) -> Self { Self(rawValue: .string(date.formatted(.iso8601))) }
    }

    /// A lane for jobs.
    public struct Priority: RawRepresentable, Sendable, Hashable, Codable {
        /// The lane's name.
        public let rawValue: String
        /// Creates a lane that has no static member here.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The lanes, the most urgent first.
        public static let high = Self(rawValue: "high"), normal = Self(rawValue: "normal"), low = Self(rawValue: "low")
    }
}

extension ImageJob {
    /// The image that a job loads.
    public struct Source: RawRepresentable, Sendable, Hashable, Codable, ExpressibleByStringLiteral {
        /// The value in the job's JSON.
        public let rawValue: JSONValue
        /// Creates a source that has no initializer or static member here.
        public init(rawValue: JSONValue) { self.rawValue = rawValue }

        /// Creates a source from a URL (`https:`, `http:`, `file:`, `s3:`, `data:`) or from `initials:JD`.
        public init(_ text: String) { rawValue = .string(text) }
        /// Creates a source from a URL.
        public init(_ url: URL) { self.init(url.absoluteString) }
        /// Creates a source from a URL or from `initials:JD`.
        public init(stringLiteral value: String) { self.init(value) }

        /// An image at a URL that may change, such as a presigned URL. URLs with the same `cacheKey` lead to the same
        /// image.
        public static func url(_ url: URL, cacheKey: String) -> Self {
            Self(["url": .string(url.absoluteString), "cacheKey": .string(cacheKey)])
        }

        /// An image sent with the job. It is identified by its SHA-256, or by `cacheKey`.
        public static func bytes(_ data: Data, cacheKey: String? = nil) -> Self {
            Self([
                "base64": .string(data.base64EncodedString()), "cacheKey": cacheKey.map(JSONValue.string),
            ])
        }

        /// An avatar with initials, in CSS colors. Without colors, Halcyon chooses them by the letters.
        public static func initials(_ letters: String, background: String? = nil, foreground: String? = nil) -> Self {
            Self([
                "initials": .string(letters), "background": background.map(JSONValue.string),
                "foreground": foreground.map(JSONValue.string),
            ])
        }

        /// A frame of a video, a number of seconds after its start.
        public static func video(_ source: Self, seconds: Double = 0) -> Self {
            Self(["video": source.rawValue, "seconds": .number(seconds)])
        }

        /// Frames of a video at equal distances, in rows.
        /// - Parameters:
        ///   - source: The video.
        ///   - columns: The number of frames in a row.
        ///   - rows: The number of rows.
        ///   - width: The width of each in pixels.
        public static func contactSheet(
            ofVideo source: Self, columns: Int = 4, rows: Int = 4, width: Int = 320
        ) -> Self {
            let sheet: [String: JSONValue?] = [
                "columns": .number(Double(columns)), "rows": .number(Double(rows)), "width": .number(Double(width)),
            ]
            return Self(["video": source.rawValue, "contactSheet": JSONValue(members: sheet)])
        }

        /// An animation of frames of a video at equal distances.
        /// - Parameters:
        ///   - source: The video.
        ///   - frames: The number of frames.
        ///   - duration: The duration of the animation in seconds.
        ///   - width: The width in pixels.
        public static func preview(
            ofVideo source: Self, frames: Int = 10, duration: Double = 3, width: Int = 320
        ) -> Self {
            let preview: [String: JSONValue?] = [
                "frames": .number(Double(frames)), "duration": .number(duration), "width": .number(Double(width)),
            ]
            return Self(["video": source.rawValue, "preview": JSONValue(members: preview)])
        }

        private init(_ members: [String: JSONValue?]) { rawValue = JSONValue(members: members) }
    }
}

/// Any JSON value.
public enum JSONValue: Sendable, Hashable {
    /// `null`.
    case null
    /// `true` or `false`.
    case bool(Bool)
    /// A number.
    case number(Double)
    /// A string.
    case string(String)
    /// An array.
    case array([JSONValue])
    /// An object.
    case object([String: JSONValue])

    /// An object without the members that are nil.
    init(members: [String: JSONValue?]) { self = .object(members.compactMapValues { $0 }) }
}

extension JSONValue: Codable {
    /// Decodes any value.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        // A decoder tells the type of a value only by refusing the others.
        func decoded<Value: Decodable>(_ type: Value.Type) -> Value? { try? container.decode(type) }
        if container.decodeNil() {
            self = .null
        } else if let value = decoded(Bool.self) {
            self = .bool(value)
        } else if let value = decoded(Double.self) {
            self = .number(value)
        } else if let value = decoded(String.self) {
            self = .string(value)
        } else if let value = decoded([JSONValue].self) {
            self = .array(value)
        } else {
            self = .object(try container.decode([String: JSONValue].self))
        }
    }

    /// Encodes the value itself, without its case.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .null: try container.encodeNil()
        case .bool(let value): try container.encode(value)
        case .number(let value): try container.encode(value)
        case .string(let value): try container.encode(value)
        case .array(let value): try container.encode(value)
        case .object(let value): try container.encode(value)
        }
    }
}

extension JSONValue: ExpressibleByBooleanLiteral, ExpressibleByFloatLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByStringLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral, ExpressibleByNilLiteral
{
    /// Creates `null`.
    public init(nilLiteral: ()) { self = .null }
    /// Creates `true` or `false`.
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    /// Creates a number.
    public init(integerLiteral value: Int) { self = .number(Double(value)) }
    /// Creates a number.
    public init(floatLiteral value: Double) { self = .number(value) }
    /// Creates a string.
    public init(stringLiteral value: String) { self = .string(value) }
    /// Creates an array.
    public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
    /// Creates an object. Of members with the same name, the last one counts.
    public init(dictionaryLiteral elements: (String, JSONValue)...) {
        self = .object(Dictionary(elements) { $1 })
    }
}

extension RawRepresentable where Self: Codable, RawValue == JSONValue {
    /// Decodes the raw value.
    public init(from decoder: any Decoder) throws {
        guard let value = Self(rawValue: try JSONValue(from: decoder)) else {
            throw DecodingError.dataCorrupted(
                .init(codingPath: decoder.codingPath, debugDescription: "unexpected JSON"))
        }
        self = value
    }

    /// Encodes the raw value.
    public func encode(to encoder: any Encoder) throws { try rawValue.encode(to: encoder) }
}
