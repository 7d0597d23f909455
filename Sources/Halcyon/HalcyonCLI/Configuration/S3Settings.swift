import Formats
import HalcyonModel
import HalcyonSources
import ProgramSettings

/// The settings of an S3-compatible store, as they are written.
struct S3Settings: Sendable {
    var endpoint = ""
    var region = S3Options().region
    var accessKey = ""
    var secretKey = ""
    var sessionToken = ""
    var style = S3Options().style
}

/// The members of the settings of one store.
struct S3SettingMembers: Sendable {
    typealias Member<Value> = WritableKeyPath<ProgramOptions, Value> & Sendable

    /// The beginning of the settings' names.
    let prefix: String
    let endpoint, region, accessKey, secretKey, sessionToken: Member<String>
    let style: Member<S3Options.Style>

    /// Credentials come from Amazon's variables as a whole or not at all, because a session token is valid only with
    /// its key.
    var credentials: [PartialKeyPath<ProgramOptions> & Sendable] { [accessKey, secretKey, sessionToken] }

    static let sources = S3SettingMembers(
        prefix: "sources.s3", endpoint: \.sourceS3.endpoint, region: \.sourceS3.region,
        accessKey: \.sourceS3.accessKey, secretKey: \.sourceS3.secretKey, sessionToken: \.sourceS3.sessionToken,
        style: \.sourceS3.style)
    static let results = S3SettingMembers(
        prefix: "results.s3", endpoint: \.resultS3.endpoint, region: \.resultS3.region,
        accessKey: \.resultS3.accessKey, secretKey: \.resultS3.secretKey, sessionToken: \.resultS3.sessionToken,
        style: \.resultS3.style)
}

extension ProgramOptions {
    /// The settings of an S3-compatible store, which are Amazon's variables unless they are set.
    /// - Parameter use: what is in the store, for the help.
    static func s3Settings(_ members: S3SettingMembers, of use: String) -> [Setting<ProgramOptions>] {
        let prefix = members.prefix
        return [
            Setting(
                "\(prefix).endpoint", members.endpoint, .text,
                fallbacks: ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"]
            )
            .help("URL of the S3-compatible store of \(use), which may be private. Amazon S3 by default."),
            Setting(
                "\(prefix).region", members.region, .text,
                fallbacks: ["AWS_REGION", "AWS_DEFAULT_REGION"]
            )
            .help("Region of the store."),
            Setting(
                "\(prefix).accessKey", members.accessKey, .text, fallbacks: ["AWS_ACCESS_KEY_ID"]
            )
            .help("Access key id. Requests are unsigned by default."),
            Setting(
                "\(prefix).secretKey", members.secretKey, .text, isSecret: true,
                fallbacks: ["AWS_SECRET_ACCESS_KEY"]
            )
            .help("Secret access key."),
            Setting(
                "\(prefix).sessionToken", members.sessionToken, .text, isSecret: true,
                fallbacks: ["AWS_SESSION_TOKEN"]
            )
            .help("Session token of temporary credentials."),
            Setting("\(prefix).style", members.style, .oneOf)
                .help(
                    """
                    Bucket name in URLs: path, virtual (in the host), or auto (in the host at Amazon, else in the path).
                    """),
        ]
    }
}

extension S3Options {
    /// Creates the options from the settings with a prefix.
    /// - Throws: ``ConfigurationError`` that names the setting.
    init(_ settings: Settings<ProgramOptions>, _ members: S3SettingMembers) throws(ConfigurationError) {
        func value<Value>(_ member: S3SettingMembers.Member<Value>) -> Value { settings.options[keyPath: member] }
        let prefix = members.prefix
        let given = S3Settings(
            endpoint: value(members.endpoint), region: value(members.region), accessKey: value(members.accessKey),
            secretKey: value(members.secretKey), sessionToken: value(members.sessionToken), style: value(members.style))
        self.init()
        (region, style) = (given.region, given.style)
        guard given.accessKey.isEmpty == given.secretKey.isEmpty,
            !given.accessKey.isEmpty || given.sessionToken.isEmpty
        else {
            let named: [(name: String, member: S3SettingMembers.Member<String>)] = [
                ("accessKey", members.accessKey), ("secretKey", members.secretKey),
                ("sessionToken", members.sessionToken),
            ]
            throw ConfigurationError(
                "\(prefix): accessKey and secretKey require each other, and sessionToken requires both; found "
                    + named.filter { !value($0.member).isEmpty }
                    .map { "\(prefix).\($0.name) (\(settings.origin(of: $0.member)))" }
                    .joined(separator: ", "))
        }
        if !given.accessKey.isEmpty {
            credentials = Credentials(
                accessKey: given.accessKey, secretKey: given.secretKey,
                sessionToken: given.sessionToken.isEmpty ? nil : given.sessionToken)
        }
        if !given.endpoint.isEmpty {
            endpoint = try Self.endpoint(
                given.endpoint, "\(prefix).endpoint", settings.origin(of: members.endpoint))
        }
        guard !region.isEmpty, region.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f && !":/@?#".utf8.contains($0) }) else {
            throw ConfigurationError(
                "\(prefix).region: expected a region such as eu-central-1; see "
                    + "\(settings.origin(of: members.region))"
            )
        }
    }

    private static func endpoint(
        _ text: String, _ name: String, _ origin: some CustomStringConvertible
    ) throws(ConfigurationError) -> WebURL {
        let url: WebURL
        do throws(JobError) {
            url = try WebURL(text)
        } catch {
            throw ConfigurationError(
                error.code == .unsupportedSource
                    ? "\(name): expected an http or https URL such as http://store:9000; see \(origin)"
                    : "\(name): \(error.message); see \(origin)")
        }
        guard !text.utf8.contains(where: { "@?#".utf8.contains($0) }) else {
            throw ConfigurationError("\(name): expected a URL without user, query and fragment; see \(origin)")
        }
        return url
    }
}
