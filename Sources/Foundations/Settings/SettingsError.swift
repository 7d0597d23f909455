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
