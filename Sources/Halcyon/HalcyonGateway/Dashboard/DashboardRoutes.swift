import CEmbeddedFiles
import Formats
import HTTPServer
import Hashing

/// Serves the dashboard at `/`. The page is public; the data that it loads is not.
enum DashboardRoutes {
    static let all: [Route] = [
        Route("GET", "/", for: nil) { page.answer($0) },
        Route("GET", "/dashboard/{name}", for: nil) { call in
            guard let file = files[call["name"]] else { throw Problem(.notFound, "no route matches this path") }
            return file.answer(call)
        },
    ]

    /// The Content-Security-Policy of the page: it loads only files of this gateway, runs no inline scripts, submits no
    /// forms and cannot be framed. Images are shown from blob URLs.
    private static let policy =
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
        + "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

    private static let page = files(".html", type: "html")["index.html"]!

    /// The style sheet and the scripts by name.
    private static let files = files(".css", type: "css").merging(files(".js", type: "javascript")) { $1 }

    private static func files(_ suffix: String, type: String) -> [String: EmbeddedFile] {
        EmbeddedFiles.files(suffix).mapValues {
            EmbeddedFile("text/\(type); charset=utf-8", $0, headers: ["Content-Security-Policy": policy])
        }
    }
}

/// Serves the API descriptions `/openapi.yaml` and `/asyncapi.yaml`. They are public.
enum DocumentRoutes {
    static var all: [Route] {
        EmbeddedFiles.files(".yaml").map { name, document in
            // RFC 9512.
            let file = EmbeddedFile("application/yaml", document)
            return Route("GET", "/\(name)", for: nil) { file.answer($0) }
        }
    }
}

/// Serves photographs at `/samples/NAME`, as origins serve images. They are public.
enum SampleRoutes {
    /// - Parameter photographs: JPEG files by name. There is no route without any.
    static func all(_ photographs: [String: [UInt8]]) -> [Route] {
        guard !photographs.isEmpty else { return [] }
        let files = photographs.mapValues { EmbeddedFile("image/jpeg", $0, cacheControl: "max-age=3600") }
        return [
            Route("GET", "/samples/{name}", for: nil) { call in
                guard let file = files[call["name"]] else {
                    let names = photographs.keys.sorted().joined(separator: ", ")
                    throw Problem(.notFound, "no sample has this name; the samples are \(names)")
                }
                return file.answer(call)
            }
        ]
    }
}

/// Files of this repository that are a part of the program.
public enum EmbeddedFiles {
    /// JPEG files by name, for ``GatewayOptions/samples``: a portrait (`astronaut.jpg`), a cat of 451×300 pixels
    /// (`chelsea.jpg`) and a cup of coffee (`coffee.jpg`).
    public static var photographs: [String: [UInt8]] { files(".jpg") }

    /// Returns the files with this suffix by name.
    static func files(_ suffix: String) -> [String: [UInt8]] {
        var files: [String: [UInt8]] = [:]
        var file = embedded_files()
        while let name = file.pointee.name.map({ String(cString: $0) }) {
            if name.hasSuffix(suffix) {
                files[name] = [UInt8](UnsafeBufferPointer(start: file.pointee.bytes, count: file.pointee.size))
            }
            file += 1
        }
        return files
    }
}

/// A file that is embedded in the program. By default browsers revalidate it on each use, because another release
/// has another version.
struct EmbeddedFile: Sendable {
    private let type: String
    private let bytes: [UInt8]
    private let tag: EntityTag
    private let validity: HTTPFields

    /// - Parameters:
    ///   - type: the media type.
    ///   - cacheControl: the header `Cache-Control`.
    ///   - headers: additional headers of responses, including 304 Not Modified.
    init(
        _ type: String, _ bytes: [UInt8], cacheControl: String = "no-cache", headers: HTTPFields = HTTPFields()
    ) {
        self.type = type
        self.bytes = bytes
        tag = EntityTag(value: SHA256.hash(bytes).description)
        var validity: HTTPFields = ["ETag": tag.description, "Cache-Control": cacheControl]
        for field in headers.fields { validity.add(field.name, field.value) }
        self.validity = validity
    }

    func answer(_ call: RequestContext) -> HTTPServer.Response {
        if tag.isNamed(by: call.request.headers["If-None-Match"]) {
            return HTTPServer.Response(status: 304, headers: validity)
        }
        var headers = validity
        headers.add("Content-Type", type)
        return HTTPServer.Response(status: 200, headers: headers, body: .bytes(bytes))
    }
}
