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
