/// A line in a list of settings for display.
public struct SettingLine: Equatable, Sendable {
    /// The name of the setting, or of the entry of a map.
    public let name: String
    /// The value. Secrets, and passwords and secret parameters in URLs, are replaced by stars.
    public let value: String
    /// The source of the value.
    public let origin: SettingSource
}

/// The effective settings of a program, each with its source.
///
///     let settings = try Settings(schema, flags: flags, environment: environment, file: file)
///     let grace = settings.options.worker.grace
public struct Settings<Options: Sendable>: Sendable {
    /// The options with all settings applied.
    public internal(set) var options: Options
    let schema: SettingsSchema<Options>
    /// The sources of the values that are set, by the names of settings and map entries.
    var origins: [String: SettingSource] = [:]

    /// Merges the layers. In increasing precedence they are the defaults of the schema, the file, the environment, and
    /// the flags. A value that none of them sets may come from a fallback of the schema.
    /// - Throws: ``SettingsError`` for an unknown name, an invalid value, a setting given twice in one layer, and a
    ///   file that is not plain YAML.
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

    /// Returns the source of a member's value. The member must belong to a setting.
    public func origin(of member: PartialKeyPath<Options>) -> SettingSource {
        origins[schema.setting(of: member).name] ?? .builtIn
    }

    /// All settings in the order of the schema, then the entries of its maps, with secrets masked.
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

/// A setting that contains names of another system, such as a library's properties:
///
///     SettingMap("kafka.properties", \.kafkaProperties, variables: "KAFKA_PROPERTY_")
///         .help("Passed to librdkafka.")
///
/// In the file it is a mapping. Each variable `PREFIX_KAFKA_PROPERTY_name` sets one name, with its spelling preserved.
public struct SettingMap<Options>: Sendable {
    /// The name of the mapping: `kafka.properties`.
    public let name: String
    /// The prefix of its variables' names, after the schema's prefix.
    public let variables: String
    /// The purpose, in a sentence.
    public private(set) var explanation = ""
    let member: WritableKeyPath<Options, [String: String]> & Sendable
    private let isSecret: Bool?

    /// Declares a map.
    /// - Parameter isSecret: True if its values are never printed. By default those of names with `password`, `secret`,
    ///   `token` or `pem` in them are secret.
    public init(
        _ name: String, _ member: WritableKeyPath<Options, [String: String]> & Sendable, variables: String,
        isSecret: Bool? = nil
    ) {
        self.name = name
        self.member = member
        self.variables = variables
        self.isSecret = isSecret
    }

    /// Returns a copy with a help text of one sentence.
    public func help(_ text: String) -> Self {
        var copy = self
        copy.explanation = text
        return copy
    }

    func isSecret(_ name: String) -> Bool { isSecret ?? isSecretName(name) }
}

/// The source of a value, lowest precedence first.
public enum SettingSource: Hashable, Sendable, CustomStringConvertible {
    /// The default of the program.
    case builtIn
    /// A line of the settings file, counted from 1.
    case file(String, line: Int)
    /// An environment variable.
    case variable(String)
    /// A flag of the command line, as typed.
    case flag(String)

    /// The source as text: `default`, `settings.yaml:12`, `PREFIX_KAFKA_BROKERS`, `--brokers`.
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

/// Masks a secret without revealing its length. An empty text stays empty, which shows that it is not set.
func stars(for secret: String) -> String { secret.isEmpty ? "" : mask }

/// True if values with this name are secret unless stated otherwise.
private func isSecretName(_ name: String) -> Bool {
    ["password", "secret", "token", "pem"].contains { name.lowercased().contains($0) }
}

/// Masks the password and the secret parameters of each URL in a text (`redis://user:****@host?token=****`). If the end
/// of a password is ambiguous, more is hidden.
func withoutPasswords(_ text: String) -> String {
    text.split(separator: " ", omittingEmptySubsequences: false).map(masked).joined(separator: " ")
}

private func masked(_ url: Substring) -> String {
    guard let scheme = url.firstRange(of: "://") else { return String(url) }
    let rest = url[scheme.upperBound...]
    // A password and a parameter can overlap, because either may contain any of the delimiters.
    var secrets = RangeSet<String.Index>()
    if let at = rest.lastIndex(of: "@"), let colon = rest[..<at].firstIndex(of: ":") {
        secrets.insert(contentsOf: rest.index(after: colon)..<at)
    }
    let query = rest.drop { $0 != "?" }.dropFirst()
    for parameter in query.split(separator: "&") {
        guard let equals = parameter.firstIndex(of: "=") else { continue }
        let name = String(parameter[..<equals])
        // API keys and signatures are secret in URLs only: "key" is also a part of the names of file paths.
        guard isSecretName(name) || ["key", "sig"].contains(where: { name.lowercased().contains($0) }) else { continue }
        secrets.insert(contentsOf: parameter.index(after: equals)..<parameter.endIndex)
    }
    var shown = ""
    var start = url.startIndex
    for secret in secrets.ranges {
        shown += url[start..<secret.lowerBound]
        shown += mask
        start = secret.upperBound
    }
    return shown + url[start...]
}

/// An error in the settings. The message names the setting, its location, and the expected value.
public struct SettingsError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The kind of error.
    public enum Code: Sendable {
        /// A name is unknown.
        case unknownName
        /// A value has the wrong form or is out of range.
        case badValue
        /// A setting is given twice in one layer.
        case doubled
        /// A file cannot be read or is too large.
        case unreadableFile
        /// A file is not YAML of the supported form.
        case malformedFile
    }

    /// The kind of error.
    public let code: Code
    /// The location: a flag, a variable, or a file and line; nil if the error concerns a whole file.
    public let origin: SettingSource?
    private let message: String

    init(_ code: Code, _ message: String, _ origin: SettingSource?) {
        self.code = code
        self.message = message
        self.origin = origin
    }

    /// Always false: the same settings cause the same error again.
    public var isRetriable: Bool { false }

    /// The location and the message: `settings.yaml:3: unknown setting kafka.broker; did you mean kafka.brokers?`
    public var description: String { origin.map { "\($0): \(message)" } ?? message }
}
