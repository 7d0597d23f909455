import Digests
import Formats
import HTTPServer

/// `/`: the page that shows the cluster at work. It is for everybody; what it asks for is not.
enum DashboardRoutes {
    static let all: [Route] = [
        Route("GET", "/", for: nil) { page.answer($0) },
        Route("GET", "/dashboard/{name}", for: nil) { call in
            guard let file = files[call["name"]] else { throw Problem(.notFound, "there is nothing at this path") }
            return file.answer(call)
        },
    ]

    /// What the page may do: load what this gateway serves and nothing else, run no script that stands in a text, send no form, and stand in no
    /// other page. Pictures are made of what it has asked for.
    private static let policy =
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
        + "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

    private static func file(_ type: String, _ bytes: [UInt8]) -> EmbeddedFile {
        EmbeddedFile("text/\(type); charset=utf-8", bytes, headers: ["Content-Security-Policy": policy])
    }

    private static let page = file("html", PackageResources.index_html)

    /// What the page is made of, by name.
    private static let files: [String: EmbeddedFile] = {
        var files = ["dashboard.css": file("css", PackageResources.dashboard_css)]
        let scripts = [
            "api.js": PackageResources.api_js,
            "cluster.js": PackageResources.cluster_js,
            "dashboard.js": PackageResources.dashboard_js,
            "dead.js": PackageResources.dead_js,
            "elements.js": PackageResources.elements_js,
            "failures.js": PackageResources.failures_js,
            "figures.js": PackageResources.figures_js,
            "format.js": PackageResources.format_js,
            "gallery.js": PackageResources.gallery_js,
            "measures.js": PackageResources.measures_js,
            "pictures.js": PackageResources.pictures_js,
            "stream.js": PackageResources.stream_js,
            "trial.js": PackageResources.trial_js,
            "waterfall.js": PackageResources.waterfall_js,
        ]
        for (name, bytes) in scripts { files[name] = file("javascript", bytes) }
        return files
    }()
}

/// `/openapi.yaml` and `/asyncapi.yaml`: what the gateway and the cluster behind it are, for programs and whoever writes them. Everybody may
/// read them.
enum DocumentRoutes {
    static var all: [Route] {
        [
            route("/openapi.yaml", PackageResources.openapi_yaml),
            route("/asyncapi.yaml", PackageResources.asyncapi_yaml),
        ]
    }

    private static func route(_ path: String, _ document: [UInt8]) -> Route {
        // RFC 9512.
        let file = EmbeddedFile("application/yaml", document)
        return Route("GET", path, for: nil) { file.answer($0) }
    }
}

/// A file that is a part of the program. Browsers keep it and ask each time whether it is still this one: another release has another one.
struct EmbeddedFile: Sendable {
    private let type: String
    private let bytes: [UInt8]
    private let tag: EntityTag
    private let validity: HTTPFields

    /// - Parameters:
    ///   - type: the media type.
    ///   - headers: that its answers have besides, and those which say that it is still the same.
    init(_ type: String, _ bytes: [UInt8], headers: HTTPFields = HTTPFields()) {
        self.type = type
        self.bytes = bytes
        tag = EntityTag(value: SHA256.hash(bytes).description)
        var validity: HTTPFields = ["ETag": tag.description, "Cache-Control": "no-cache"]
        for field in headers.fields { validity.add(field.name, field.value) }
        self.validity = validity
    }

    func answer(_ call: Call) -> HTTPServer.Response {
        if tag.isNamed(by: call.request.headers["If-None-Match"]) {
            return HTTPServer.Response(status: 304, headers: validity)
        }
        var headers = validity
        headers.add("Content-Type", type)
        return HTTPServer.Response(status: 200, headers: headers, body: .bytes(bytes))
    }
}
