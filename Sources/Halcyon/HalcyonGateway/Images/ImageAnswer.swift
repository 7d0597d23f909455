import CivilTime
import HTTPServer
import HalcyonCluster
import HalcyonModel

/// An image as HTTP answers with it (RFC 9110, 13 and 14; RFC 9111, 5.2). A pure value.
struct ImageAnswer {
    /// How long, and by whom, an answer may be kept.
    struct Validity: Hashable {
        fileprivate let maxAge: Int64
        fileprivate let isPublic: Bool

        /// - Parameters:
        ///   - remaining: milliseconds that are left of the result's life.
        ///   - leave: how its reader was let in. A cache for many keeps what everybody may have, and what a signed URL lets everybody have
        ///     who has the URL, for no longer than that does; what a key was needed for it does not keep.
        init(_ remaining: Int64, leave: Caller.Leave, now: Timestamp = .now) {
            let remaining = remaining / 1000
            switch leave {
            case .open, .signature(expires: nil): (maxAge, isPublic) = (remaining, true)
            case .key: (maxAge, isPublic) = (remaining, false)
            case .signature(let expires?):
                (maxAge, isPublic) = (max(0, min(remaining, expires - now.milliseconds / 1000)), true)
            }
        }
    }

    private let facts: ResultFacts
    private let validity: Validity

    init(_ facts: ResultFacts, _ validity: Validity) { (self.facts, self.validity) = (facts, validity) }

    /// Whether a cache for many may keep it: its origin has a word in that, too.
    private var isPublic: Bool { validity.isPublic && !facts.isPrivate }

    /// Equal bytes have equal tags, whenever they were made.
    private var tag: EntityTag { EntityTag(value: facts.sha256) }

    /// What every answer tells that lets its reader keep the image.
    private var keeping: HTTPServer.Headers {
        [
            "ETag": tag.description,
            "Cache-Control": "\(isPublic ? "public" : "private"), max-age=\(validity.maxAge)",
        ]
    }

    private var headers: HTTPServer.Headers {
        var headers = keeping
        headers.add("Accept-Ranges", "bytes")
        for field in Self.content(facts.format).fields { headers.add(field.name, field.value) }
        return headers
    }

    /// Whether a request is for the whole image, whatever its reader has of it.
    static func isForAll(_ request: HTTPServer.Request) -> Bool {
        request.method == "GET" && ["If-None-Match", "Range"].allSatisfy { request.headers[$0] == nil }
    }

    /// The whole image.
    func whole(_ body: [UInt8]) -> HTTPServer.Response {
        HTTPServer.Response(status: 200, headers: headers, body: .bytes(body))
    }

    /// What a request is answered with; nil when that takes the bytes, and they are not here.
    func response(to request: HTTPServer.Request, _ body: [UInt8]?) -> HTTPServer.Response? {
        // The reader has it.
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

    /// The image, or the part of it that is wanted.
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

    /// What is given once: nobody keeps it, and there are no parts of it.
    /// - Parameter body: nil for an answer to HEAD.
    static func once(_ format: ImageFormat, _ count: Int, _ body: [UInt8]?) -> HTTPServer.Response {
        var headers = content(format)
        headers.add("Cache-Control", "no-store")
        return HTTPServer.Response(status: 200, headers: headers, body: body.map { .bytes($0) } ?? unsent(count))
    }

    private static func content(_ format: ImageFormat) -> HTTPServer.Headers {
        var headers: HTTPServer.Headers = [
            "Content-Type": format.mediaType,
            // Pages of other sites are what images are for.
            "Cross-Origin-Resource-Policy": "cross-origin",
        ]
        if format.isDocument {
            headers.add("Content-Disposition", "attachment; filename=\"image.\(format.fileExtension)\"")
        }
        return headers
    }

    /// Tells a length, and nobody asks for the bytes.
    private static func unsent(_ count: Int) -> HTTPServer.Response.Body { .stream(length: count) { _ in } }
}

extension ImageFormat {
    /// Whether it may hold scripts: browsers are to save it, not to show it.
    fileprivate var isDocument: Bool { self == .svg || self == .pdf }
}
