import Formats

/// All settings of a program, and the values that they have before anything sets them.
public struct SettingsSchema<Options: Sendable>: Sendable {
    /// What the program's variables start with, such as `MYAPP_`.
    public let prefix: String
    /// The settings, in the order in which they are listed.
    public let settings: [Setting<Options>]
    /// The open maps.
    public let maps: [SettingMap<Options>]
    let defaults: Options
    private let together: [[PartialKeyPath<Options> & Sendable]]
    private let ignored: Set<String>
    private let byName: [String: Setting<Options>]
    private let byLetters: [String: Setting<Options>]

    /// - Parameters:
    ///   - together: members whose fallbacks are parts of one whole: they are taken only where nothing else sets any of
    ///     these, so that no part is mixed with another's.
    ///   - ignoring: variables with the prefix that are not settings, by their whole names.
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
        // A doubled name, or two that differ in dots alone, is a mistake in the program, and traps here.
        byName = Dictionary(uniqueKeysWithValues: settings.map { ($0.name, $0) })
        byLetters = Dictionary(uniqueKeysWithValues: settings.map { (letters($0.name), $0) })
    }

    /// The variable that sets a setting: `MYAPP_WORKER_MEMORY_LIMIT` for `worker.memoryLimit`.
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

    /// The setting of a member, which must have one.
    func setting(of member: PartialKeyPath<Options>) -> Setting<Options> {
        guard let setting = settings.first(where: { $0.member == member }) else {
            preconditionFailure("no setting sets \(member)")
        }
        return setting
    }

    /// The settings whose fallbacks count only together with those of a setting, which is among them.
    func whole(of setting: Setting<Options>) -> [Setting<Options>] {
        together.first { $0.contains { $0 == setting.member } }?.map(self.setting) ?? [setting]
    }

    // MARK: Finding

    enum Target {
        case setting(Setting<Options>)
        case entry(SettingMap<Options>, name: String)
    }

    /// What a name of the file or of a flag stands for.
    func target(named name: String) -> Target? {
        if let setting = byName[name] { return .setting(setting) }
        guard let map = maps.first(where: { name.hasPrefix($0.name + ".") }) else { return nil }
        return .entry(map, name: String(name.dropFirst(map.name.count + 1)))
    }

    /// What a variable stands for; underscores do not count. Throws for one that has the prefix and is unknown, and
    /// gives nil for the others.
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
        throw SettingsError(.unknownName, "sets nothing that is known\(hint)", .variable(variable))
    }

    /// Whether some setting stands below that name.
    func isSection(_ name: String) -> Bool {
        maps.contains { $0.name == name }
            || (settings.map(\.name) + maps.map(\.name)).contains { $0.hasPrefix(name + ".") }
    }

    func unknown(_ name: String, _ origin: SettingOrigin) -> SettingsError {
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
/// Its default is what the member holds before any layer sets it.
public struct Setting<Options>: Sendable {
    /// Parts in lower camel case with dots between them: `worker.memoryLimit`.
    public let name: String
    /// Its purpose, in a sentence.
    public private(set) var explanation = ""
    /// Whether its value is never printed.
    public let isSecret: Bool
    /// The form of its value: `a whole number from 1 to 64`.
    public let expectation: String
    /// Variables of other programs that set it where nothing of this program's does, the strongest first.
    public let fallbacks: [String]
    let member: PartialKeyPath<Options> & Sendable
    /// False when the text is no value of this setting.
    let set: @Sendable (ValueText, inout Options) -> Bool
    /// Gives a text that reads back as the value.
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

    /// With what it is for, in a sentence.
    public func help(_ text: String) -> Self {
        var copy = self
        copy.explanation = text
        return copy
    }
}
