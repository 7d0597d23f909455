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
