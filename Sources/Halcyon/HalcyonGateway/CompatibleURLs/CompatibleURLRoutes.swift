import Formats
import HTTPServer
import HalcyonCoding
import HalcyonModel

/// Serves images under the URLs of imgproxy, thumbor and imagor, through the same rendering as `GET /v1/render`.
struct CompatibleURLRoutes: Sendable {
    let render: RenderRoutes
    let options: CompatibleURLOptions

    /// One route for each grammar that is served. Those with the longer prefixes come first.
    var all: [Route] {
        [URLGrammar.imgproxy(options.imgproxy), .thumbor(options.thumbor), .thumbor(options.imagor)]
            .compactMap { grammar in URLPrefix(grammar.prefix).map { (grammar, $0) } }
            .sorted { $0.1.segments.count > $1.1.segments.count }
            .map { route(of: $0, behind: $1) }
    }

    private func route(of grammar: URLGrammar, behind prefix: URLPrefix) -> Route {
        Route(
            "GET", "/" + (prefix.segments + ["{url...}"]).joined(separator: "/"), for: nil, startsJobs: true,
            verify: { request throws(Problem) in
                _ = try grammar.verified(prefix.rest(of: request.target))
                return .signature(expires: nil)
            },
            answer: { call in
                let url = try grammar.parse(prefix.rest(of: call.request.target))
                if let expires = url.expires, Timestamp.now.seconds >= Double(expires) + 1 {
                    throw Problem(.gone, "the URL has expired")
                }
                let request = RenderRequest(
                    draft: url.draft, formats: options.formats, qualities: url.qualities,
                    disposition: url.disposition)
                return try await render.response(to: request, call.expiring(at: url.expires))
            })
    }
}

/// A grammar of URLs with its settings.
enum URLGrammar: Sendable {
    case imgproxy(ImgproxyURLOptions)
    case thumbor(ThumborURLOptions)

    /// The parsed URL.
    struct Image {
        let draft: JobBuilder
        let qualities: FormatQualities?
        let expires: Int64?
        let disposition: ContentDisposition?
    }

    /// The path that the URLs begin with; empty if they are not served.
    var prefix: String {
        switch self {
        case .imgproxy(let options): options.prefix
        case .thumbor(let options): options.prefix
        }
    }

    /// Returns the path behind the signature, which is verified.
    /// - Throws: ``Problem`` of the kind `forbidden`.
    func verified(_ target: (path: Substring, query: Substring?)) throws(Problem) -> String {
        switch self {
        case .imgproxy(let options): try ImgproxyURL.verify(target.path, options)
        case .thumbor(let options): try ThumborURL.verify(target.path, query: target.query, options)
        }
    }

    /// Verifies and parses a URL.
    /// - Throws: ``Problem`` that names what is invalid or has no counterpart.
    func parse(_ target: (path: Substring, query: Substring?)) throws(Problem) -> Image {
        let path = try verified(target)
        switch self {
        case .imgproxy(let options):
            let url = try ImgproxyURL(path, options)
            return Image(
                draft: url.draft, qualities: url.qualities, expires: url.expires, disposition: url.disposition)
        case .thumbor(let options):
            let url = try ThumborURL(path, options)
            return Image(
                draft: url.draft, qualities: url.qualities, expires: url.expires, disposition: url.disposition)
        }
    }
}

/// The header `Content-Disposition` of an image (RFC 6266). A pure value.
struct ContentDisposition: Hashable {
    /// The file name without the extension of the format.
    let name: String
    /// True if browsers save the image instead of showing it.
    let isAttachment: Bool

    /// True for a file name without slashes and control characters.
    static func isValid(_ name: String) -> Bool {
        !name.isEmpty && name.utf8.count <= 200
            && name.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7f && $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "\\") }
    }

    /// Returns the file name of a source without its extension; `image` if it has none.
    static func name(of source: String) -> String {
        let path = source.prefix { $0 != "?" && $0 != "#" }
        let last = path.split(separator: "/").last.flatMap { PercentEncoding.decode($0) } ?? ""
        let name = last.lastIndex(of: ".").map { String(last[..<$0]) } ?? last
        return isValid(name) ? name : "image"
    }

    /// Returns the value of the header for an image of a media type.
    func header(mediaType: String) -> String {
        let format = ImageFormat.allCases.first { $0.mediaType == mediaType }
        let file = format.map {
            name.lowercased().hasSuffix(".\($0.fileExtension)") ? name : "\(name).\($0.fileExtension)"
        }
        let full = file ?? name
        let plain = full.map { $0.isASCII && $0 != "\"" && $0 != "\\" && $0 != "%" ? String($0) : "_" }.joined()
        var value = "\(isAttachment ? "attachment" : "inline"); filename=\"\(plain)\""
        if plain != full { value += "; filename*=UTF-8''\(PercentEncoding.encode(full))" }
        return value
    }
}
