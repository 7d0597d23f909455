/// The effective settings of a program, each with the layer that it came from.
///
///     let settings = try Settings(schema, flags: flags, environment: environment, file: file)
///     let grace = settings[Keys.grace]
public struct Settings: Sendable {
    /// One setting as it is listed for people.
    public struct Line: Equatable, Sendable {
        /// The setting, or the entry of a map.
        public let name: String
        /// Its value; of a secret, and of a password in a URL, only stars.
        public let value: String
        /// The layer that it came from.
        public let origin: SettingOrigin
    }

    private let schema: SettingsSchema
    private let values: [String: Layers.Value]
    private let entries: [String: [String: Layers.Entry]]

    /// Reads the layers, of which the later beat the earlier: the defaults of the schema, the file, the environment,
    /// the flags. What none of them sets may come from a fallback of the schema.
    /// - Throws: ``SettingsError`` for a name that is unknown, a value that is not what was expected, a setting that
    ///   stands twice in one layer, and a file that is not plain YAML.
    public init(
        _ schema: SettingsSchema, flags: [SettingFlag] = [], environment: [String: String] = [:],
        file: SettingsFile? = nil
    ) throws(SettingsError) {
        var layers = Layers(schema: schema)
        if let file { try layers.add(file) }
        try layers.add(environment)
        try layers.add(flags)
        for fallback in schema.fallbacks { try layers.add(fallback, in: environment) }
        self.schema = schema
        values = layers.values
        entries = layers.entries
    }

    /// The value of a setting, which must be of the schema.
    public subscript<Value>(key: SettingKey<Value>) -> Value {
        guard let set = values[key.name] else { return key.defaultValue }
        guard let value = set.value as? Value else { preconditionFailure("\(key.name) is declared with two types") }
        return value
    }

    /// The entries of a map, from all layers together.
    public subscript(map: SettingMap) -> [String: String] {
        (entries[map.name] ?? [:]).mapValues(\.text)
    }

    /// Where the value of a setting comes from.
    public func origin(of key: some AnySettingKey) -> SettingOrigin {
        values[key.name]?.origin ?? .builtIn
    }

    /// All settings in the order of the schema, then the entries of its maps, with no secret in them.
    public var listing: [Line] {
        let ofKeys = schema.keys.map { key in
            let set = values[key.name]
            let text = set.map { key.text(of: $0.value) } ?? key.defaultText
            return Line(
                name: key.name, value: key.isSecret ? stars(for: text) : withoutPasswords(text),
                origin: set?.origin ?? .builtIn)
        }
        let ofMaps = schema.maps.flatMap { map in
            (entries[map.name] ?? [:]).sorted { $0.key < $1.key }.map { name, entry in
                Line(
                    name: "\(map.name).\(name)",
                    value: map.isSecret(name) ? stars(for: entry.text) : withoutPasswords(entry.text),
                    origin: entry.origin)
            }
        }
        return ofKeys + ofMaps
    }
}
