import Formats
import HTTPServer
import HalcyonCluster
import HalcyonModel

/// Creates the HTTP responses of an image (RFC 9110, 13 and 14; RFC 9111, 5.2). A pure value.
struct ImageResponse {
    /// The cache lifetime of a response, and whether shared caches may store it.
    struct ImageCacheControl: Hashable {
        fileprivate let maxAge: Int64
        fileprivate let isPublic: Bool

        /// - Parameters:
        ///   - remaining: the remaining lifetime of the result in milliseconds.
        ///   - leave: the means by which the request was authorized. Shared caches may store public images, and
        ///     images of signed URLs until the URL expires. They may not store images that needed a key.
        init(_ remaining: Int64, leave: Principal.Authorization, now: Timestamp = .now) {
            let remaining = remaining / 1000
            switch leave {
            case .open, .signature(expires: nil): (maxAge, isPublic) = (remaining, true)
            case .key: (maxAge, isPublic) = (remaining, false)
            case .signature(let expires?):
                (maxAge, isPublic) = (max(0, min(remaining, expires - now.milliseconds / 1000)), true)
            }
        }
    }

    private let facts: ResultMetadata
    private let validity: ImageCacheControl
    /// The headers with tags; nil if the tags do not fit.
    private let tags: HTTPFields?

    init(_ facts: ResultMetadata, _ validity: ImageCacheControl, tags: HTTPFields? = [:]) {
        (self.facts, self.validity, self.tags) = (facts, validity, tags)
    }

    /// True if shared caches may store the response. The origin of the source can forbid that, too.
    private var isPublic: Bool { validity.isPublic && !facts.isPrivate && tags != nil }

    /// The entity tag, which depends only on the bytes.
    private var tag: EntityTag { EntityTag(value: facts.sha256) }

    /// The headers of every response that can be cached.
    private var keeping: HTTPFields {
        var headers: HTTPFields = [
            "ETag": tag.description,
            "Cache-Control": "\(isPublic ? "public" : "private"), max-age=\(validity.maxAge)",
        ]
        for field in tags?.fields ?? [] { headers.add(field.name, field.value) }
        return headers
    }

    private var headers: HTTPFields {
        var headers = keeping
        headers.add("Accept-Ranges", "bytes")
        headers.add("Halcyon-Image-Size", Self.size(facts.width, facts.height))
        for field in Self.content(facts.format).fields { headers.add(field.name, field.value) }
        return headers
    }

    /// True if a request is for the whole image and not conditional.
    static func isForAll(_ request: HTTPServer.Request) -> Bool {
        request.method == "GET" && ["If-Match", "If-None-Match", "Range"].allSatisfy { request.headers[$0] == nil }
    }

    /// Returns a response with the whole image.
    func whole(_ body: [UInt8]) -> HTTPServer.Response {
        HTTPServer.Response(status: 200, headers: headers, body: .bytes(body))
    }

    /// Returns the response to a request; nil if it needs the bytes and `body` is nil. Conditions are evaluated in the
    /// order of RFC 9110, 13.2.2.
    func response(to request: HTTPServer.Request, _ body: [UInt8]?) -> HTTPServer.Response? {
        guard tag.allowsMatch(request.headers["If-Match"]) else {
            return Problem(.preconditionFailed, "the image has changed; its entity tag is \(tag)").response
        }
        // The client's copy is current.
        if tag.isNamed(by: request.headers["If-None-Match"]) {
            return HTTPServer.Response(status: 304, headers: keeping)
        }
        if request.method == "HEAD" {
            return HTTPServer.Response(status: 200, headers: headers, body: Self.unsent(facts.bytes))
        }
        return body.map {
            answer($0, range: request.headers.first("Range"), ifRange: request.headers.first("If-Range"))
        }
    }

    /// Returns a response with the image or the requested range.
    private func answer(_ body: [UInt8], range: String?, ifRange: String?) -> HTTPServer.Response {
        var headers = headers
        switch tag.allowsRange(ifRange) ? ByteRange(range, count: body.count) : .whole {
        case .whole: return whole(body)
        case .part(let part):
            headers.add("Content-Range", "bytes \(part.lowerBound)-\(part.upperBound - 1)/\(body.count)")
            return HTTPServer.Response(status: 206, headers: headers, body: .bytes(Array(body[part])))
        case .none:
            var problem = Problem(.rangeNotSatisfiable, "the image has \(body.count) bytes")
            problem.headers["Content-Range"] = "bytes */\(body.count)"
            return problem.response
        }
    }

    /// Returns a response that must not be cached and has no ranges, for an image that is delivered once.
    /// - Parameters:
    ///   - size: the width and height in pixels.
    ///   - body: nil for a response to HEAD.
    static func once(
        _ format: ImageFormat, size: (width: Int, height: Int), _ count: Int, _ body: [UInt8]?
    ) -> HTTPServer.Response {
        var headers = content(format)
        headers.add("Cache-Control", "no-store")
        headers.add("Halcyon-Image-Size", Self.size(size.width, size.height))
        return HTTPServer.Response(status: 200, headers: headers, body: body.map { .bytes($0) } ?? unsent(count))
    }

    /// The value of `Halcyon-Image-Size`, so that clients know the size of an image without decoding it.
    private static func size(_ width: Int, _ height: Int) -> String { "\(width)x\(height)" }

    private static func content(_ format: ImageFormat) -> HTTPFields {
        var headers: HTTPFields = [
            "Content-Type": format.mediaType,
            // Images are meant to be embedded in pages of other sites.
            "Cross-Origin-Resource-Policy": "cross-origin",
        ]
        if format.isDocument {
            headers.add("Content-Disposition", "attachment; filename=\"image.\(format.fileExtension)\"")
        }
        return headers
    }

    /// Returns a body with a length and no bytes, for HEAD.
    private static func unsent(_ count: Int) -> HTTPServer.Response.Body { .stream(length: count) { _ in } }
}

extension ImageFormat {
    /// True if the format can contain scripts. Browsers are told to download such files instead of showing them.
    fileprivate var isDocument: Bool { self == .svg || self == .pdf }
}

/// The byte range that a request asks for with `Range` (RFC 9110, 14.1.2). A pure value.
enum ByteRange: Hashable {
    /// The whole file: there is no range, or it is not supported.
    case whole
    /// A range of at least one byte.
    case part(Range<Int>)
    /// An unsatisfiable range: 416.
    case none

    /// - Parameters:
    ///   - header: the value of `Range`; nil without one.
    ///   - count: the size of the whole file in bytes.
    ///
    /// Several ranges are answered with the whole file, as RFC 9110, 14.2 allows.
    init(_ header: String?, count: Int) {
        self = .whole
        guard let header, let unit = header.firstIndex(of: "="), header[..<unit].lowercased() == "bytes" else { return }
        let spec = header[header.index(after: unit)...].filter { $0 != " " && $0 != "\t" }
        let ends = spec.split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2, let first = Self.number(ends[0]), let last = Self.number(ends[1]) else { return }
        switch (first, last) {
        case (nil, nil): return
        case (nil, let suffix?): self = suffix == 0 || count == 0 ? .none : .part(max(0, count - suffix)..<count)
        case (let first?, let last):
            if let last, last < first { return }
            self = first >= count ? .none : .part(first..<min(count, (last ?? count - 1) &+ 1))
        }
    }

    /// Parses digits. Returns `.some(nil)` for an empty text and nil for an invalid one. A number that overflows
    /// becomes the maximum.
    private static func number(_ text: Substring) -> Int?? {
        guard text.utf8.allSatisfy((UInt8(ascii: "0")...UInt8(ascii: "9")).contains) else { return nil }
        return .some(text.isEmpty ? nil : Int(text) ?? Int.max - 1)
    }
}

/// An entity tag (RFC 9110, 8.8.3). A pure value.
struct EntityTag: Hashable, CustomStringConvertible {
    /// The text between the quotes.
    let value: String

    /// The tag as written in a header.
    var description: String { "\"\(value)\"" }

    /// True if `If-None-Match` contains the tag, so that the client's copy is current (RFC 9110, 13.1.2: weak
    /// comparison).
    func isNamed(by header: String?) -> Bool {
        guard let header else { return false }
        return header.trimmed == "*" || Self.tags(in: header).contains { $0.value == value }
    }

    /// True if `If-Match` allows the request (RFC 9110, 13.1.1: strong comparison, no weak tags).
    func allowsMatch(_ header: String?) -> Bool {
        guard let header else { return true }
        return header.trimmed == "*" || Self.tags(in: header).contains { $0.value == value && !$0.isWeak }
    }

    /// True if `If-Range` allows a partial response (RFC 9110, 13.1.5: strong comparison, no weak tags and no dates).
    func allowsRange(_ header: String?) -> Bool {
        guard let header else { return true }
        return header.trimmed == description
    }

    /// Returns the quoted texts of a list of tags, which may contain commas, and whether `W/` precedes them.
    private static func tags(in list: String) -> [(value: String, isWeak: Bool)] {
        var (tags, rest) = ([(value: String, isWeak: Bool)](), list[...])
        while let open = rest.firstIndex(of: "\"") {
            let inside = rest[rest.index(after: open)...]
            guard let close = inside.firstIndex(of: "\"") else { break }
            tags.append((String(inside[..<close]), rest[..<open].hasSuffix("W/")))
            rest = inside[inside.index(after: close)...]
        }
        return tags
    }
}

extension String {
    fileprivate var trimmed: Substring {
        self.drop { $0 == " " || $0 == "\t" }.reversed().drop { $0 == " " || $0 == "\t" }.reversed().reduce(into: "") {
            $0.append($1)
        }[...]
    }
}

/// Settings of the headers by which shared caches purge images.
public struct CacheTagOptions: Hashable, Sendable {
    /// A response header with tags.
    public enum Header: String, CaseIterable, Sendable {
        /// `Cache-Tag` of Cloudflare, CloudFront and others, with commas between tags.
        case cacheTag = "cache-tag"
        /// `Surrogate-Key` of Fastly, with spaces between keys.
        case surrogateKey = "surrogate-key"
        /// `xkey` of Varnish, with spaces between keys.
        case xkey

        /// The name and the separator of the header.
        var form: (name: String, separator: String) {
            switch self {
            case .cacheTag: ("Cache-Tag", ",")
            case .surrogateKey: ("Surrogate-Key", " ")
            case .xkey: ("xkey", " ")
            }
        }
    }

    /// The headers that responses have.
    public var headers: [Header] = []
    /// The maximum size of the value of each header. CDNs accept 16 KiB.
    public var maximumBytes = 8 << 10

    /// Creates options without headers.
    public init() {}

    /// The memory that the headers of a response need.
    var headBytes: Int { Set(headers).count * (maximumBytes + 64) }

    /// Returns the headers of a response with a result. A pure function.
    /// - Parameter tags: the tags of its jobs; nil if they are too many.
    /// - Returns: nil if the tags do not fit. Shared caches must not store the response, because a purge might not reach
    ///   it there.
    func fields(of key: String, _ tags: [String]?) -> HTTPFields? {
        guard !headers.isEmpty, let key = ResultKey(key) else { return [:] }
        guard let tags else { return nil }
        let all = CacheTag.all(of: key) + tags
        guard all.reduce(-1, { $0 + $1.utf8.count + 1 }) <= maximumBytes else { return nil }
        var fields = HTTPFields()
        for header in headers {
            let (name, separator) = header.form
            fields[name] = all.joined(separator: separator)
        }
        return fields
    }
}
