import Formats
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
    private var keeping: HTTPFields {
        [
            "ETag": tag.description,
            "Cache-Control": "\(isPublic ? "public" : "private"), max-age=\(validity.maxAge)",
        ]
    }

    private var headers: HTTPFields {
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

    private static func content(_ format: ImageFormat) -> HTTPFields {
        var headers: HTTPFields = [
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

/// The part of a file that a request asks for with `Range` (RFC 9110, 14.1.2). A pure value.
enum ByteRange: Hashable {
    /// The whole file: nothing else was asked for, or nothing that is understood here.
    case whole
    /// These bytes, at least one.
    case part(Range<Int>)
    /// No byte of it: 416.
    case none

    /// - Parameters:
    ///   - header: the value of `Range`; nil where there is none.
    ///   - count: bytes of the whole file.
    ///
    /// Several ranges at once are answered with the whole file, as RFC 9110, 14.2 allows: who wants pieces of an image asks for one.
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

    /// Digits; nil inside for none at all, nil outside for what is no number. A number past all files is the largest.
    private static func number(_ text: Substring) -> Int?? {
        guard text.utf8.allSatisfy((UInt8(ascii: "0")...UInt8(ascii: "9")).contains) else { return nil }
        return .some(text.isEmpty ? nil : Int(text) ?? Int.max - 1)
    }
}

/// What tells one making of a result from the next (RFC 9110, 8.8.3). A pure value.
struct EntityTag: Hashable, CustomStringConvertible {
    /// What stands between the quotes.
    let value: String

    /// As a header has it.
    var description: String { "\"\(value)\"" }

    /// Whether `If-None-Match` names it, so that the client has it already (RFC 9110, 13.1.2: weak comparison).
    func isNamed(by header: String?) -> Bool {
        guard let header else { return false }
        if header.trimmed == "*" { return true }
        return Self.tags(in: header).contains(value)
    }

    /// Whether `If-Range` lets a part be sent (RFC 9110, 13.1.5: strong comparison, so no weak tag and no date).
    func allowsRange(_ header: String?) -> Bool {
        guard let header else { return true }
        return header.trimmed == description
    }

    /// What stands between the quotes of a list of tags. A comma may stand there as well.
    private static func tags(in list: String) -> [String] {
        var (tags, rest) = ([String](), list[...])
        while let open = rest.firstIndex(of: "\"") {
            let inside = rest[rest.index(after: open)...]
            guard let close = inside.firstIndex(of: "\"") else { break }
            tags.append(String(inside[..<close]))
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
