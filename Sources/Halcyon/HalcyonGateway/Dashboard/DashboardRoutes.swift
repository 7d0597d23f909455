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

    private static func file(_ type: String, _ bytes: [UInt8]) -> EmbeddedFile {
        EmbeddedFile("text/\(type); charset=utf-8", bytes, headers: ["Content-Security-Policy": policy])
    }

    private static let page = file("html", PackageResources.index_html)

    /// The files of the page by name.
    private static let files: [String: EmbeddedFile] = {
        var files = ["dashboard.css": file("css", PackageResources.dashboard_css)]
        let scripts = [
            "access.js": PackageResources.access_js,
            "actions.js": PackageResources.actions_js,
            "api.js": PackageResources.api_js,
            "batches.js": PackageResources.batches_js,
            "cluster.js": PackageResources.cluster_js,
            "dashboard.js": PackageResources.dashboard_js,
            "dead.js": PackageResources.dead_js,
            "elements.js": PackageResources.elements_js,
            "failures.js": PackageResources.failures_js,
            "figures.js": PackageResources.figures_js,
            "format.js": PackageResources.format_js,
            "gallery.js": PackageResources.gallery_js,
            "job.js": PackageResources.job_js,
            "jobs.js": PackageResources.jobs_js,
            "keyboard.js": PackageResources.keyboard_js,
            "pictures.js": PackageResources.pictures_js,
            "reproduce.js": PackageResources.reproduce_js,
            "stream.js": PackageResources.stream_js,
            "trial.js": PackageResources.trial_js,
            "views.js": PackageResources.views_js,
            "waterfall.js": PackageResources.waterfall_js,
        ]
        for (name, bytes) in scripts { files[name] = file("javascript", bytes) }
        return files
    }()
}

/// Serves the API descriptions `/openapi.yaml` and `/asyncapi.yaml`. They are public.
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
