import Spelling

/// All settings of a program.
public struct SettingsSchema: Sendable {
    /// What the program's variables start with, such as `MYAPP_`.
    public let prefix: String
    /// The settings, in the order in which they are listed.
    public let keys: [any AnySettingKey]
    /// The open maps.
    public let maps: [SettingMap]
    /// Where settings come from that nothing of the program's own sets.
    public let fallbacks: [SettingFallback]
    private let ignored: Set<String>
    private let byName: [String: any AnySettingKey]
    private let byLetters: [String: any AnySettingKey]

    /// - Parameters:
    ///   - ignoring: variables with the prefix that are not settings, by their whole names.
    public init(
        prefix: String, keys: [any AnySettingKey], maps: [SettingMap] = [], ignoring: [String] = [],
        fallbacks: [SettingFallback] = []
    ) {
        self.prefix = prefix
        self.keys = keys
        self.maps = maps
        self.fallbacks = fallbacks
        ignored = Set(ignoring)
        // A doubled name, or two that differ in dots alone, is a mistake in the program, and traps here.
        byName = Dictionary(uniqueKeysWithValues: keys.map { ($0.name, $0) })
        byLetters = Dictionary(uniqueKeysWithValues: keys.map { (letters($0.name), $0) })
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

    /// Variables of other programs that set it where nothing else does, the strongest first.
    public func otherVariables(for name: String) -> [String] {
        fallbacks.flatMap(\.settings).filter { $0.key.name == name }.flatMap(\.variables)
    }

    // MARK: Finding

    enum Target {
        case key(any AnySettingKey)
        case entry(SettingMap, name: String)
    }

    /// What a name of the file or of a flag stands for.
    func target(named name: String) -> Target? {
        if let key = byName[name] { return .key(key) }
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
        if isUpper, let key = byLetters[letters(rest)] { return .key(key) }
        let names = keys.map { self.variable(for: $0.name) }
        let hint = suggestion(for: variable, among: names).map { "; did you mean \($0)?" } ?? ""
        throw SettingsError(.unknownName, "sets nothing that is known\(hint)", .variable(variable))
    }

    /// Whether some setting stands below that name.
    func isSection(_ name: String) -> Bool {
        maps.contains { $0.name == name } || (keys.map(\.name) + maps.map(\.name)).contains { $0.hasPrefix(name + ".") }
    }

    func unknown(_ name: String, _ origin: SettingOrigin) -> SettingsError {
        let hint =
            suggestion(for: name, among: keys.map(\.name) + maps.map(\.name)).map { "; did you mean \($0)?" } ?? ""
        return SettingsError(.unknownName, "unknown setting \(name)\(hint)", origin)
    }
}

private func letters(_ name: some StringProtocol) -> String {
    String(name).filter { $0 != "." && $0 != "_" }.uppercased()
}
