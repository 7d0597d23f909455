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
