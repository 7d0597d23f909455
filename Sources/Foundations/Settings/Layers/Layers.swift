/// A setting given on the command line.
public struct SettingFlag: Sendable {
    /// The setting, or an entry of a map (`kafka.properties.debug`).
    public let name: String
    /// The flag as it is spelt, for errors: `--brokers`.
    public let flag: String
    /// Its value.
    public let value: String

    /// Takes the parts as they are.
    public init(name: String, flag: String, value: String) {
        self.name = name
        self.flag = flag
        self.value = value
    }
}

/// Values found so far; a layer that is added later wins.
struct Layers {
    struct Value {
        let value: any Sendable
        let origin: SettingOrigin
    }

    struct Entry {
        let text: String
        let origin: SettingOrigin
    }

    let schema: SettingsSchema
    private(set) var values: [String: Value] = [:]
    private(set) var entries: [String: [String: Entry]] = [:]

    init(schema: SettingsSchema) {
        self.schema = schema
    }

    mutating func add(_ file: SettingsFile) throws(SettingsError) {
        for entry in try flatYAML(file.bytes, name: file.name) {
            let origin = SettingOrigin.file(file.name, line: entry.line)
            let target = schema.target(named: entry.key)
            switch (target, entry.value) {
            // A section whose lines are all commented out sets nothing.
            case (nil, nil) where schema.isSection(entry.key): break
            case (nil, .list([])) where schema.isSection(entry.key): break
            case (nil, _): throw schema.unknown(entry.key, origin)
            case (_?, nil): break
            case (let target?, let text?): try set(target, text, origin)
            }
        }
    }

    mutating func add(_ environment: [String: String]) throws(SettingsError) {
        var setters: [String: String] = [:]
        // In order, so that of several faults always the same one is told.
        for (variable, text) in environment.sorted(by: { $0.key < $1.key }) {
            guard let target = try schema.target(ofVariable: variable) else { continue }
            if case .key(let key) = target, let other = setters.updateValue(variable, forKey: key.name) {
                throw SettingsError(.doubled, "sets \(key.name), as does \(other)", .variable(variable))
            }
            try set(target, .scalar(text), .variable(variable))
        }
    }

    mutating func add(_ flags: [SettingFlag]) throws(SettingsError) {
        for flag in flags {
            guard let target = schema.target(named: flag.name) else {
                throw schema.unknown(flag.name, .flag(flag.flag))
            }
            try set(target, .scalar(flag.value), .flag(flag.flag))
        }
    }

    /// To be added last. A variable that is empty says nothing.
    mutating func add(_ fallback: SettingFallback, in environment: [String: String]) throws(SettingsError) {
        if fallback.settings.contains(where: { values[$0.key.name] != nil }) { return }
        for (key, variables) in fallback.settings {
            guard let variable = variables.first(where: { environment[$0]?.isEmpty == false }),
                let text = environment[variable]
            else { continue }
            try set(.key(key), .scalar(text), .variable(variable))
        }
    }

    private mutating func set(
        _ target: SettingsSchema.Target, _ text: SettingText, _ origin: SettingOrigin
    ) throws(SettingsError) {
        switch target {
        case .key(let key):
            guard let value = key.value(of: text) else {
                let found = key.isSecret ? "" : ", found \(shown(text))"
                throw SettingsError(.badValue, "\(key.name): expected \(key.expectation)\(found)", origin)
            }
            values[key.name] = Value(value: value, origin: origin)
        case .entry(let map, let name):
            guard case .scalar(let text) = text else {
                throw SettingsError(.badValue, "\(map.name).\(name): expected a text, found a list", origin)
            }
            entries[map.name, default: [:]][name] = Entry(text: text, origin: origin)
        }
    }

    private func shown(_ text: SettingText) -> String {
        switch text {
        case .scalar(let text): "\"\(withoutPasswords(text))\""
        case .list(let texts): "[" + texts.map(withoutPasswords).joined(separator: ", ") + "]"
        }
    }
}
