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
