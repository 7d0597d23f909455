/// Variables that other programs know, for settings that nothing else sets.
///
///     SettingFallback([(Keys.user, ["PGUSER"]), (Keys.password, ["PGPASSWORD"])])
public struct SettingFallback: Sendable {
    /// The settings, and of each the variables, the strongest first.
    let settings: [(key: any AnySettingKey, variables: [String])]

    /// - Parameter settings: those that belong together. They are taken from there only where nothing else sets any of them, so that
    ///   no part of one whole is mixed with another's.
    public init(_ settings: [(any AnySettingKey, [String])]) {
        self.settings = settings.map { (key: $0.0, variables: $0.1) }
    }
}
