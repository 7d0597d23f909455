import HTTPFields

/// What an origin calls the bytes that it gave (RFC 9110, section 8.8): to ask later whether they have changed.
public struct Validators: Hashable, Sendable {
    /// The entity tag, with its quotes and, where it is weak, its `W/`.
    public var etag: String?
    /// The date of the last change, as it was sent.
    public var lastModified: String?
    /// The resource that sent them, by a name of its provider's: they say nothing to any other (RFC 9110, section 8.8). Nil
    /// where a source has but one.
    public var resource: String?

    /// The field in which a loaded response carries the name of its resource. No origin sends it.
    public static let resourceField = "Halcyon-Resource"

    /// Nothing, unless more is given.
    public init(etag: String? = nil, lastModified: String? = nil, resource: String? = nil) {
        self.etag = etag
        self.lastModified = lastModified
        self.resource = resource
    }

    /// Those of a response.
    public init(of headers: HTTPFields) {
        self.init(
            etag: headers.first("ETag"), lastModified: headers.first("Last-Modified"),
            resource: headers.first(Self.resourceField))
    }

    /// Whether nothing can be asked by them.
    public var isEmpty: Bool { etag == nil && lastModified == nil }
}
