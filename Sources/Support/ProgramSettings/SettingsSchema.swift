import Formats

/// All settings of a program, with their defaults.
public struct SettingsSchema<Options: Sendable>: Sendable {
    /// The prefix of the program's variables, such as `MYAPP_`.
    public let prefix: String
    /// The settings, in display order.
    public let settings: [Setting<Options>]
    /// The open maps.
    public let maps: [SettingMap<Options>]
    let defaults: Options
    private let together: [[PartialKeyPath<Options> & Sendable]]
    private let ignored: Set<String>
    private let byName: [String: Setting<Options>]
    private let byLetters: [String: Setting<Options>]

    /// Creates a schema.
    /// - Parameters:
    ///   - together: Groups of members whose fallbacks belong together. The fallbacks of a group apply only if nothing
    ///     else sets any of its members, so that values from different origins are not mixed.
    ///   - ignoring: Full names of variables that have the prefix but are not settings.
    public init(
        prefix: String, defaults: Options, settings: [Setting<Options>], maps: [SettingMap<Options>] = [],
        together: [[PartialKeyPath<Options> & Sendable]] = [], ignoring: [String] = []
    ) {
        self.prefix = prefix
        self.defaults = defaults
        self.settings = settings
        self.maps = maps
        self.together = together
        ignored = Set(ignoring)
        // A duplicate name, or two names that differ only in dots, is a programming error and traps here.
        byName = Dictionary(uniqueKeysWithValues: settings.map { ($0.name, $0) })
        byLetters = Dictionary(uniqueKeysWithValues: settings.map { (letters($0.name), $0) })
    }

    /// Returns the variable that sets a setting: `MYAPP_WORKER_MEMORY_LIMIT` for `worker.memoryLimit`.
    public func variable(for name: String) -> String {
        var result = prefix
        var isAfterSmall = false
        for character in name {
            if character.isUppercase && isAfterSmall { result += "_" }
            result += character == "." ? "_" : character.uppercased()
            isAfterSmall = character.isLowercase || character.isNumber
        }
        return result
    }

    /// Returns the setting of a member, which must have one.
    func setting(of member: PartialKeyPath<Options>) -> Setting<Options> {
        guard let setting = settings.first(where: { $0.member == member }) else {
            preconditionFailure("no setting sets \(member)")
        }
        return setting
    }

    /// Returns the settings whose fallbacks belong together with those of `setting`, including itself.
    func whole(of setting: Setting<Options>) -> [Setting<Options>] {
        together.first { $0.contains { $0 == setting.member } }?.map(self.setting) ?? [setting]
    }

    // MARK: Finding

    enum Target {
        case setting(Setting<Options>)
        case entry(SettingMap<Options>, name: String)
    }

    /// Resolves a name in the file or in a flag.
    func target(named name: String) -> Target? {
        if let setting = byName[name] { return .setting(setting) }
        guard let map = maps.first(where: { name.hasPrefix($0.name + ".") }) else { return nil }
        return .entry(map, name: String(name.dropFirst(map.name.count + 1)))
    }

    /// Resolves a variable, ignoring underscores. Throws if it has the prefix but is unknown, and returns nil for other
    /// variables.
    func target(ofVariable variable: String) throws(SettingsError) -> Target? {
        guard variable.hasPrefix(prefix), !ignored.contains(variable) else { return nil }
        let rest = variable.dropFirst(prefix.count)
        if let map = maps.first(where: { rest.hasPrefix($0.variables) && rest.count > $0.variables.count }) {
            return .entry(map, name: String(rest.dropFirst(map.variables.count)))
        }
        let isUpper = !rest.contains { $0.isLowercase }
        if isUpper, let setting = byLetters[letters(rest)] { return .setting(setting) }
        let names = settings.map { self.variable(for: $0.name) }
        let hint = suggestion(for: variable, among: names).map { "; did you mean \($0)?" } ?? ""
        throw SettingsError(.unknownName, "no such setting\(hint)", .variable(variable))
    }

    /// True if a setting exists below that name.
    func isSection(_ name: String) -> Bool {
        maps.contains { $0.name == name }
            || (settings.map(\.name) + maps.map(\.name)).contains { $0.hasPrefix(name + ".") }
    }

    func unknown(_ name: String, _ origin: SettingSource) -> SettingsError {
        let hint =
            suggestion(for: name, among: settings.map(\.name) + maps.map(\.name)).map { "; did you mean \($0)?" } ?? ""
        return SettingsError(.unknownName, "unknown setting \(name)\(hint)", origin)
    }
}

private func letters(_ name: some StringProtocol) -> String {
    String(name).filter { $0 != "." && $0 != "_" }.uppercased()
}

/// A setting, and the member of `Options` that it sets:
///
///     Setting("worker.grace", \.worker.grace, .duration()).help("Time to finish work.")
///
/// The initial value of the member is the default.
public struct Setting<Options>: Sendable {
    /// The name, whose parts are in lower camel case with dots between them: `worker.memoryLimit`.
    public let name: String
    /// The purpose, in a sentence.
    public private(set) var explanation = ""
    /// True if the value is never printed.
    public let isSecret: Bool
    /// The form of the value: `a whole number from 1 to 64`.
    public let expectation: String
    /// Variables of other programs that set it if no layer does, highest precedence first.
    public let fallbacks: [String]
    let member: PartialKeyPath<Options> & Sendable
    /// Sets the value from a text. False if the text is invalid.
    let set: @Sendable (ValueText, inout Options) -> Bool
    /// Returns a text that parses back to the value.
    let text: @Sendable (Options) -> String

    /// Declares a setting.
    public init<Value>(
        _ name: String, _ member: WritableKeyPath<Options, Value> & Sendable, _ kind: ValueKind<Value>,
        isSecret: Bool = false, fallbacks: [String] = []
    ) {
        self.name = name
        self.isSecret = isSecret
        self.expectation = kind.expectation
        self.fallbacks = fallbacks
        self.member = member
        set = { text, options in
            guard let value = kind.value(of: text) else { return false }
            options[keyPath: member] = value
            return true
        }
        text = { kind.text(of: $0[keyPath: member]) }
    }

    /// Returns a copy with a help text of one sentence.
    public func help(_ text: String) -> Self {
        var copy = self
        copy.explanation = text
        return copy
    }
}
