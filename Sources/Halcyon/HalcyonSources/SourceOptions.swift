/// What loading one source may cost, and where it may come from.
public struct SourceOptions: Sendable {
    /// Which addresses may be dialled.
    public var policy = AddressPolicy()
    /// Folders under which files may be read, as absolute paths.
    public var fileRoots: [String] = []
    /// Bytes of the largest source.
    public var maximumBytes = 32 << 20
    /// For the name, the connection and TLS of each request.
    public var connectTimeout = Duration.seconds(5)
    /// For the whole transfer of each request.
    public var timeout = Duration.seconds(30)
    /// For how long fewer than 64 bytes a second may come.
    public var stallTimeout = Duration.seconds(10)
    /// Redirects that are followed.
    public var maximumRedirects = 5
    /// How often the rest of a response is asked for that broke off.
    public var resumptions = 3
    /// Who Halcyon is to origins that ask.
    public var credentials: [Origin: OriginCredentials] = [:]
    /// How Halcyon names itself to origins.
    public var userAgent = "Halcyon"

    /// Where `s3:` sources are.
    public var s3 = S3Options()
    /// What frames of videos may cost.
    public var video = VideoOptions()

    /// Bytes that watermarks and other pictures beside the jobs' own may take in memory while they are fresh.
    public var sharedBytes = 32 << 20

    /// The defaults.
    public init() {}
}
