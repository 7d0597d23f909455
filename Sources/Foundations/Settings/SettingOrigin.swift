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
