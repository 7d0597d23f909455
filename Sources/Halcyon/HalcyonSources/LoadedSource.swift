import HalcyonModel

/// A source's bytes and what its origin said of them.
public struct LoadedSource: Sendable {
    /// The bytes, decoded from whatever they were transferred in.
    public var body: [UInt8]
    /// The response's header fields, for freshness.
    public var headers: HeaderFields
    /// The response's status.
    public var status: Int?
    /// The response's entity tag, as it was sent.
    public var etag: String?
    /// When the last byte had come, in seconds since 1970.
    public var completedAt: Double

    /// Takes the values as they are.
    public init(
        body: [UInt8], headers: HeaderFields = [], status: Int? = nil, etag: String? = nil,
        completedAt: Double
    ) {
        self.body = body
        self.headers = headers
        self.status = status
        self.etag = etag
        self.completedAt = completedAt
    }
}
