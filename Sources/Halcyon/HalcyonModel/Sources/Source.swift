/// What a job loads.
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
    /// What a provider of the host program loads.
    case custom(CustomSource)

    /// A source that a text names. What needs more than its text is read elsewhere: `data:` URLs need a hash, and names
    /// of the host program must be known.
    /// - Throws: ``Failure`` `unsupported_source` or `invalid_job`.
    public init(_ text: String) throws(Failure) {
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

    /// What stands before the first colon, in lower case; nil when that is no scheme (RFC 3986, section 3.1).
    public static func scheme(of text: String) -> String? {
        let bytes = Array(text.utf8)
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")), isScheme(bytes[..<colon]) else { return nil }
        return lowercased(bytes[..<colon])
    }

    /// The text as the job gave it, or one that says the same in short. What others read of it is ``shownText``, the `subject` of its events.
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

    /// What it is known by in keys: equal for sources that are the same. One line.
    public var cacheKey: String {
        switch self {
        case .web(let url): "url:\(url.canonical)"
        case .initials(let initials): "initials:\(initials.cacheKey)"
        case .file(let file): "file:\(file.path)"
        case .data(let data): data.text
        case .s3(let object): "s3:\(object.cacheKey)"
        case .video(let video): "video:\(video.cacheKey)"
        case .custom(let source): "custom:\(source.name) \(source.key)"
        }
    }
}

/// What is asked of an origin: which source, for whom, and with which header fields.
///
/// Whatever is kept or shared of a source is kept and shared by this value, and so by its ``canonicalText``.
public struct SourceRequest: Hashable, Sendable {
    /// What to load.
    public var source: Source
    /// Whose it is: nothing of one tenant's is another's.
    public var tenant: String?
    /// What the job adds to requests.
    public var headers: RequestHeaders

    /// Takes the values as they are.
    public init(_ source: Source, tenant: String? = nil, headers: RequestHeaders = RequestHeaders()) {
        self.source = source
        self.tenant = tenant
        self.headers = headers
    }
}

/// A source whose text says all of it: a URL.
public protocol TextualSource: Hashable, Codable, Sendable {
    /// As the job gave it.
    var text: String { get }

    /// - Throws: ``Failure``.
    init(_ text: String) throws(Failure)
}

extension TextualSource {
    /// Whether the bytes are the same. Swift's strings are equal when they look the same; servers may tell those apart.
    public static func == (left: Self, right: Self) -> Bool { left.text.utf8.elementsEqual(right.text.utf8) }

    /// Of the bytes.
    public func hash(into hasher: inout Hasher) {
        for byte in text.utf8 { hasher.combine(byte) }
    }

    /// From its text, checked again.
    public init(from decoder: any Decoder) throws {
        try self.init(decoder.singleValueContainer().decode(String.self))
    }

    /// As its text.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(text)
    }
}

/// What a provider of the host program's own loads, by the name it was registered under.
public struct CustomSource: Hashable, Codable, Sendable {
    /// Bytes of the longest reference taken.
    public static let longest = 16 << 10

    /// The name.
    public let name: String
    /// What the job says of it: what follows the name and a colon in a text, or the object of parameters as compact JSON,
    /// its members in the order of their names.
    public let reference: String
    /// What the provider knows it by.
    public let key: String

    /// - Parameters:
    ///   - name: the provider's.
    ///   - reference: what the job says of it, as ``reference`` has it.
    ///   - makeKey: the provider's rule.
    /// - Throws: ``Failure`` `invalid_job` for a reference that is too long, or one whose key is empty, too long or of several
    ///   lines; and what the rule throws.
    public init(
        name: String, reference: String, _ makeKey: (_ name: String, _ reference: String) throws(Failure) -> String
    ) throws(Failure) {
        guard reference.utf8.count <= Self.longest else {
            throw Failure(.invalidJob, "\(name): longer than \(Self.longest) bytes")
        }
        do throws(Failure) {
            key = try makeKey(name, reference)
        } catch {
            throw error.within(name)
        }
        guard (1...Self.longest).contains(key.utf8.count), !key.utf8.hasControlCharacter else {
            throw Failure(.invalidJob, "\(name): the provider makes no key of this: one line is wanted")
        }
        self.name = name
        self.reference = reference
    }

    /// Both together, as a job may write them.
    public var text: String { "\(name):\(reference)" }

    /// Whether the bytes are the same. Swift's strings are equal when they look the same; a program may tell those apart.
    public static func == (left: CustomSource, right: CustomSource) -> Bool {
        left.name.utf8.elementsEqual(right.name.utf8) && left.reference.utf8.elementsEqual(right.reference.utf8)
    }

    /// Of the bytes.
    public func hash(into hasher: inout Hasher) {
        for byte in text.utf8 { hasher.combine(byte) }
    }
}
