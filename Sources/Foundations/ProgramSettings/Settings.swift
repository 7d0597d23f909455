/// One setting as it is listed for people.
public struct SettingLine: Equatable, Sendable {
    /// The setting, or the entry of a map.
    public let name: String
    /// Its value; of a secret, and of a password in a URL, only stars.
    public let value: String
    /// The layer that it came from.
    public let origin: SettingOrigin
}

/// The effective settings of a program, each with the layer that it came from.
///
///     let settings = try Settings(schema, flags: flags, environment: environment, file: file)
///     let grace = settings.options.worker.grace
public struct Settings<Options: Sendable>: Sendable {
    /// The options with the settings' values.
    public internal(set) var options: Options
    let schema: SettingsSchema<Options>
    /// Of what is set, by the names of settings and of entries of maps.
    var origins: [String: SettingOrigin] = [:]

    /// Reads the layers, of which the later beat the earlier: the defaults of the schema, the file, the environment,
    /// the flags. What none of them sets may come from a fallback of the schema.
    /// - Throws: ``SettingsError`` for a name that is unknown, a value that is not what was expected, a setting that
    ///   stands twice in one layer, and a file that is not plain YAML.
    public init(
        _ schema: SettingsSchema<Options>, flags: [SettingFlag] = [], environment: [String: String] = [:],
        file: SettingsFile? = nil
    ) throws(SettingsError) {
        self.schema = schema
        options = schema.defaults
        if let file { try add(file) }
        try add(environment)
        try add(flags)
        try addFallbacks(environment)
    }

    /// Returns the source of a member's value. The member must be a setting's.
    public func origin(of member: PartialKeyPath<Options>) -> SettingOrigin {
        origins[schema.setting(of: member).name] ?? .builtIn
    }

    /// All settings in the order of the schema, then the entries of its maps, with no secret in them.
    public var listing: [SettingLine] {
        let ofSettings = schema.settings.map { setting in
            let text = setting.text(options)
            return SettingLine(
                name: setting.name, value: setting.isSecret ? stars(for: text) : withoutPasswords(text),
                origin: origins[setting.name] ?? .builtIn)
        }
        let ofMaps = schema.maps.flatMap { map in
            options[keyPath: map.member].sorted { $0.key < $1.key }.map { key, text in
                let name = "\(map.name).\(key)"
                return SettingLine(
                    name: name, value: map.isSecret(key) ? stars(for: text) : withoutPasswords(text),
                    origin: origins[name] ?? .builtIn)
            }
        }
        return ofSettings + ofMaps
    }
}

/// A setting that holds names of somebody else's, such as a library's own properties:
///
///     SettingMap("kafka.properties", \.kafkaProperties, variables: "KAFKA_PROPERTY_")
///         .help("Passed to librdkafka.")
///
/// In the file it is a mapping; each variable `PREFIX_KAFKA_PROPERTY_name` sets one name, kept as it is spelt.
public struct SettingMap<Options>: Sendable {
    /// The name of the mapping: `kafka.properties`.
    public let name: String
    /// The start of its variables' names, behind the schema's prefix.
    public let variables: String
    /// Its purpose, in a sentence.
    public private(set) var explanation = ""
    let member: WritableKeyPath<Options, [String: String]> & Sendable
    private let isSecret: Bool?

    /// Declares a map.
    /// - Parameter isSecret: whether its values are never printed; unless set, those of names with `password`,
    ///   `secret`, `token` or `pem` in them.
    public init(
        _ name: String, _ member: WritableKeyPath<Options, [String: String]> & Sendable, variables: String,
        isSecret: Bool? = nil
    ) {
        self.name = name
        self.member = member
        self.variables = variables
        self.isSecret = isSecret
    }

    /// With what it is for, in a sentence.
    public func help(_ text: String) -> Self {
        var copy = self
        copy.explanation = text
        return copy
    }

    func isSecret(_ name: String) -> Bool {
        isSecret ?? ["password", "secret", "token", "pem"].contains { name.lowercased().contains($0) }
    }
}

/// Where a value comes from, weakest first.
public enum SettingOrigin: Hashable, Sendable, CustomStringConvertible {
    /// The program.
    case builtIn
    /// A line of the settings file, counted from 1.
    case file(String, line: Int)
    /// An environment variable.
    case variable(String)
    /// A flag of the command line, as it is spelt.
    case flag(String)

    /// `default`, `settings.yaml:12`, `PREFIX_KAFKA_BROKERS`, `--brokers`.
    public var description: String {
        switch self {
        case .builtIn: "default"
        case .file(let name, let line): "\(name):\(line)"
        case .variable(let name): name
        case .flag(let flag): flag
        }
    }
}

private let mask = "****"

/// Stars that do not tell the length; nothing stays nothing, so that one sees what is not set.
func stars(for secret: String) -> String { secret.isEmpty ? "" : mask }

/// The text with stars for the password of each URL in it (`redis://user:****@host`). Where the end of a password is in
/// doubt, more is hidden rather than less.
func withoutPasswords(_ text: String) -> String {
    text.split(separator: " ", omittingEmptySubsequences: false).map { word in
        guard let scheme = word.firstRange(of: "://"), let at = word.lastIndex(of: "@"), at > scheme.upperBound,
            let colon = word[scheme.upperBound..<at].firstIndex(of: ":")
        else { return String(word) }
        return word[...colon] + mask + word[at...]
    }.joined(separator: " ")
}

/// Why settings cannot be used; the message names the setting, where it stands, and what was expected.
public struct SettingsError: Error, Equatable, Sendable, CustomStringConvertible {
    /// What kind of fault it is.
    public enum Code: Sendable {
        /// A name that nobody declared.
        case unknownName
        /// A value of the wrong kind or out of range.
        case badValue
        /// A setting that stands twice in one layer.
        case doubled
        /// A file that cannot be read or is too large.
        case unreadableFile
        /// A file that is not the YAML allowed here.
        case malformedFile
    }

    /// What kind of fault it is.
    public let code: Code
    /// Where: a flag, a variable, a file and line; nil when it is about a whole file.
    public let origin: SettingOrigin?
    private let message: String

    init(_ code: Code, _ message: String, _ origin: SettingOrigin?) {
        self.code = code
        self.message = message
        self.origin = origin
    }

    /// The same settings fail again.
    public var isRetriable: Bool { false }

    /// `settings.yaml:3: unknown setting kafka.broker; did you mean kafka.brokers?`
    public var description: String { origin.map { "\($0): \(message)" } ?? message }
}
