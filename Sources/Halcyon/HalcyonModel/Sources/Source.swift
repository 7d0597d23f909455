/// The source image of a job.
public enum Source: Hashable, Codable, Sendable {
    /// An image on the web.
    case web(WebURL)
    /// A drawn avatar.
    case initials(Initials)
    /// A file of the worker's machine.
    case file(FileSource)
    /// Bytes that came with the job.
    case data(DataSource)
    /// An object of an S3-compatible store.
    case s3(S3Source)
    /// A frame of a video.
    indirect case video(VideoSource)
    /// A source that is loaded by a provider of the host program.
    case custom(CustomSource)

    /// Parses a source. `data:` URLs and custom sources are decoded elsewhere, because they need a hash function or the
    /// registered names.
    /// - Throws: ``JobError`` `unsupported_source` or `invalid_job`.
    public init(_ text: String) throws(JobError) {
        if text.hasPrefix(Initials.scheme) {
            self = .initials(try Initials(String(text.dropFirst(Initials.scheme.count))))
            return
        }
        switch Self.scheme(of: text) {
        case FileSource.scheme: self = .file(try FileSource(text))
        case S3Source.scheme: self = .s3(try S3Source(text))
        default: self = .web(try WebURL(text))
        }
    }

    /// The scheme of a URL in lower case; nil if the text has no valid scheme (RFC 3986, section 3.1).
    public static func scheme(of text: String) -> String? {
        let bytes = Array(text.utf8)
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")), isScheme(bytes[..<colon]) else { return nil }
        return lowercased(bytes[..<colon])
    }

    /// The text as given in the job, or a short equivalent. Events and logs contain ``shownText`` instead.
    public var text: String {
        switch self {
        case .web(let url): url.text
        case .initials(let initials): Initials.scheme + initials.text
        case .file(let file): file.text
        case .data(let data): data.text
        case .s3(let object): object.text
        case .video(let video): video.text
        case .custom(let source): source.text
        }
    }

    /// The scheme, host and port of a source that is loaded over HTTP; nil for others.
    var origin: String? {
        switch self {
        case .web(let url): url.origin
        case .video(let video): video.input.origin
        case .initials, .file, .data, .s3, .custom: nil
        }
    }

    /// The identity in cache keys, a single line. Equal sources have equal keys.
    public var cacheKey: String {
        switch self {
        case .web(let url): url.cacheKey
        case .initials(let initials): "initials:\(initials.cacheKey)"
        case .file(let file): "file:\(file.path)"
        case .data(let data): data.text
        case .s3(let object): "s3:\(object.cacheKey)"
        case .video(let video): "video:\(video.cacheKey)"
        case .custom(let source): "custom:\(source.name) \(source.key)"
        }
    }
}

/// A request for a source: the source, the tenant and the header fields.
///
/// Cached and shared source data is identified by this value, through its ``canonicalText``.
public struct SourceRequest: Hashable, Sendable {
    /// The source to load.
    public var source: Source
    /// The tenant. Tenants share no cache entries.
    public var tenant: String?
    /// The header fields that the job adds to requests.
    public var headers: RequestHeaders

    /// Creates a request for a source.
    public init(_ source: Source, tenant: String? = nil, headers: RequestHeaders = RequestHeaders()) {
        self.source = source
        self.tenant = tenant
        self.headers = headers
    }
}

/// A source that is described by its text, such as a URL.
public protocol StringRepresentableSource: Hashable, Codable, Sendable {
    /// The text as given in the job.
    var text: String { get }

    /// Parses the text.
    /// - Throws: ``JobError`` if the text is invalid.
    init(_ text: String) throws(JobError)
}

extension StringRepresentableSource {
    /// Compares the UTF-8 bytes. Swift strings are equal if they are canonically equivalent, but servers may
    /// distinguish them.
    public static func == (left: Self, right: Self) -> Bool { left.text.utf8.elementsEqual(right.text.utf8) }

    /// Hashes the UTF-8 bytes.
    public func hash(into hasher: inout Hasher) {
        for byte in text.utf8 { hasher.combine(byte) }
    }

    /// Decodes and validates the text.
    public init(from decoder: any Decoder) throws {
        try self.init(decoder.singleValueContainer().decode(String.self))
    }

    /// Encodes the text.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(text)
    }
}

/// A source of a provider that the host program registered by name.
public struct CustomSource: Hashable, Codable, Sendable {
    /// The maximum length of a reference, in bytes.
    public static let longest = 16 << 10

    /// The name of the provider.
    public let name: String
    /// The reference to the image: the text after the name and the colon, or the parameters as compact JSON with sorted
    /// members.
    public let reference: String
    /// The provider's identifier of the image.
    public let key: String

    /// Creates a custom source.
    /// - Parameters:
    ///   - name: The name of the provider.
    ///   - reference: The reference to the image; see ``reference``.
    ///   - makeKey: The provider's function that derives the key.
    /// - Throws: ``JobError`` `invalid_job` if the reference is too long, or if its key is empty, too long or contains
    ///   control characters. Errors of `makeKey` are rethrown.
    public init(
        name: String, reference: String, _ makeKey: (_ name: String, _ reference: String) throws(JobError) -> String
    ) throws(JobError) {
        guard reference.utf8.count <= Self.longest else {
            throw JobError(.invalidJob, "\(name): longer than \(Self.longest) bytes")
        }
        do throws(JobError) {
            key = try makeKey(name, reference)
        } catch {
            throw error.within(name)
        }
        guard (1...Self.longest).contains(key.utf8.count), !key.utf8.hasControlCharacter else {
            throw JobError(.invalidJob, "\(name): the provider returned an invalid key; expected one line")
        }
        self.name = name
        self.reference = reference
    }

    /// The name and the reference, separated by a colon.
    public var text: String { "\(name):\(reference)" }

    /// Compares the UTF-8 bytes. Swift strings are equal if they are canonically equivalent, but providers may
    /// distinguish them.
    public static func == (left: CustomSource, right: CustomSource) -> Bool {
        left.name.utf8.elementsEqual(right.name.utf8) && left.reference.utf8.elementsEqual(right.reference.utf8)
    }

    /// Hashes the UTF-8 bytes.
    public func hash(into hasher: inout Hasher) {
        for byte in text.utf8 { hasher.combine(byte) }
    }
}

/// The source that an archive copy was made of.
public struct ArchivedOriginal: Hashable, Codable, Sendable {
    /// The file format.
    public var format: ImageFormat
    /// The upright size in pixels.
    public var size: PixelSize
    /// The size of the file in bytes.
    public var bytes: Int
    /// The SHA-256 of the file in lowercase hexadecimal.
    public var sha256: String

    /// Creates a description of a source.
    public init(format: ImageFormat, size: PixelSize, bytes: Int, sha256: String) {
        self.format = format
        self.size = size
        self.bytes = bytes
        self.sha256 = sha256
    }
}
