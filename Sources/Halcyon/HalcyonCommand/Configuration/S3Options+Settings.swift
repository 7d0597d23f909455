import HalcyonModel
import HalcyonSources
import Settings

extension S3Options {
    /// - Throws: ``ConfigurationError`` that names the setting.
    init(_ settings: Settings<ProgramOptions>) throws(ConfigurationError) {
        let options = settings.options
        self = options.worker.sources.s3
        let (accessKey, secretKey, token) = (options.s3AccessKey, options.s3SecretKey, options.s3SessionToken)
        guard accessKey.isEmpty == secretKey.isEmpty, !accessKey.isEmpty || token.isEmpty else {
            let given: [(name: String, member: KeyPath<ProgramOptions, String>)] = [
                ("sources.s3.accessKey", \.s3AccessKey), ("sources.s3.secretKey", \.s3SecretKey),
                ("sources.s3.sessionToken", \.s3SessionToken),
            ]
            throw ConfigurationError(
                "sources.s3: accessKey and secretKey belong together, and sessionToken only goes with both; found "
                    + given.filter { !options[keyPath: $0.member].isEmpty }
                    .map { "\($0.name) (\(settings.origin(of: $0.member)))" }.joined(separator: ", "))
        }
        if !accessKey.isEmpty {
            credentials = Credentials(
                accessKey: accessKey, secretKey: secretKey, sessionToken: token.isEmpty ? nil : token)
        }
        if !options.s3Endpoint.isEmpty { endpoint = try Self.endpoint(settings) }
        guard !region.isEmpty, region.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f && !":/@?#".utf8.contains($0) }) else {
            throw ConfigurationError(
                "sources.s3.region: expected a region such as eu-central-1; see \(settings.origin(of: \.worker.sources.s3.region))"
            )
        }
    }

    private static func endpoint(_ settings: Settings<ProgramOptions>) throws(ConfigurationError) -> WebURL {
        let text = settings.options.s3Endpoint
        let origin = settings.origin(of: \.s3Endpoint)
        let url: WebURL
        do throws(Failure) {
            url = try WebURL(text)
        } catch {
            throw ConfigurationError(
                error.code == .unsupportedSource
                    ? "sources.s3.endpoint: expected an http or https URL such as https://store.example:9000; see \(origin)"
                    : "sources.s3.endpoint: \(error.message); see \(origin)")
        }
        guard !text.utf8.contains(where: { "@?#".utf8.contains($0) }) else {
            throw ConfigurationError(
                "sources.s3.endpoint: expected a URL without user, query and fragment; see \(origin)")
        }
        return url
    }
}
