import HalcyonModel
import HalcyonSources
import Settings

extension S3Options {
    /// - Throws: ``ConfigurationError`` that names the setting.
    init(_ settings: Settings) throws(ConfigurationError) {
        self.init()
        let (accessKey, secretKey) = (settings[Keys.s3AccessKey], settings[Keys.s3SecretKey])
        let token = settings[Keys.s3SessionToken]
        guard accessKey.isEmpty == secretKey.isEmpty, !accessKey.isEmpty || token.isEmpty else {
            let given = [Keys.s3AccessKey, Keys.s3SecretKey, Keys.s3SessionToken].filter { !settings[$0].isEmpty }
            throw ConfigurationError(
                "sources.s3: accessKey and secretKey belong together, and sessionToken only goes with both; found "
                    + given.map { "\($0.name) (\(settings.origin(of: $0)))" }.joined(separator: ", "))
        }
        if !accessKey.isEmpty {
            credentials = Credentials(
                accessKey: accessKey, secretKey: secretKey, sessionToken: token.isEmpty ? nil : token)
        }
        if !settings[Keys.s3Endpoint].isEmpty { endpoint = try Self.endpoint(settings) }
        region = settings[Keys.s3Region]
        guard !region.isEmpty, region.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f && !":/@?#".utf8.contains($0) }) else {
            throw ConfigurationError(
                "sources.s3.region: expected a region such as eu-central-1; see \(settings.origin(of: Keys.s3Region))")
        }
        style = settings[Keys.s3Style]
    }

    private static func endpoint(_ settings: Settings) throws(ConfigurationError) -> WebURL {
        let text = settings[Keys.s3Endpoint]
        let origin = settings.origin(of: Keys.s3Endpoint)
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
