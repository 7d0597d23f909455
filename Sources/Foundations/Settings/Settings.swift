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
