/// A setting that holds names of somebody else's, such as a library's own properties:
///
///     SettingMap("kafka.properties", variables: "KAFKA_PROPERTY_", help: "Passed to librdkafka.")
///
/// In the file it is a mapping; each variable `PREFIX_KAFKA_PROPERTY_name` sets one name, kept as it is spelt.
public struct SettingMap: Sendable {
    /// Where the mapping stands: `kafka.properties`.
    public let name: String
    /// What its variables start with, behind the schema's prefix.
    public let variables: String
    /// What it is for, in a sentence.
    public let help: String
    /// Whether the value of a name is never printed.
    let isSecret: @Sendable (String) -> Bool

    /// Declares a map. Unless `isSecret` says otherwise, values of names with `password`, `secret`, `token` or `pem` in
    /// them are secret.
    public init(
        _ name: String, variables: String, help: String,
        isSecret: @escaping @Sendable (String) -> Bool = { name in
            ["password", "secret", "token", "pem"].contains { name.lowercased().contains($0) }
        }
    ) {
        self.name = name
        self.variables = variables
        self.help = help
        self.isSecret = isSecret
    }
}
