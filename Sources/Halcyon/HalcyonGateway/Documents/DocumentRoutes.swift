import HTTPServer

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
