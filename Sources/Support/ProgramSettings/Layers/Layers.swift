import Formats
import Glibc

/// A setting given on the command line.
public struct SettingFlag: Sendable {
    /// The name of the setting, or of an entry of a map (`kafka.properties.debug`).
    public let name: String
    /// The flag as typed, for errors: `--brokers`.
    public let flag: String
    /// The value.
    public let value: String

    /// Creates a flag.
    public init(name: String, flag: String, value: String) {
        self.name = name
        self.flag = flag
        self.value = value
    }
}

// Later layers override earlier ones.
extension Settings {
    mutating func add(_ file: SettingsFile) throws(SettingsError) {
        for entry in try flatYAML(file.bytes, name: file.name) {
            let origin = SettingSource.file(file.name, line: entry.line)
            let target = schema.target(named: entry.key)
            switch (target, entry.value) {
            // A section in which all lines are commented out sets nothing.
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
        // In sorted order, so that the same error is reported each time if there are several.
        for (variable, text) in environment.sorted(by: { $0.key < $1.key }) {
            guard let target = try schema.target(ofVariable: variable) else { continue }
            if case .setting(let setting) = target, let other = setters.updateValue(variable, forKey: setting.name) {
                throw SettingsError(.doubled, "sets \(setting.name), which \(other) sets too", .variable(variable))
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

    /// Applies variables of other programs to settings that nothing else sets. Empty variables are ignored.
    mutating func addFallbacks(_ environment: [String: String]) throws(SettingsError) {
        let isUnset = schema.settings.map { schema.whole(of: $0).allSatisfy { origins[$0.name] == nil } }
        for (setting, isUnset) in zip(schema.settings, isUnset) where isUnset {
            guard let variable = setting.fallbacks.first(where: { environment[$0]?.isEmpty == false }),
                let text = environment[variable]
            else { continue }
            try set(.setting(setting), .scalar(text), .variable(variable))
        }
    }

    private mutating func set(
        _ target: SettingsSchema<Options>.Target, _ text: ValueText, _ origin: SettingSource
    ) throws(SettingsError) {
        switch target {
        case .setting(let setting):
            guard setting.set(text, &options) else {
                let found = setting.isSecret ? "" : ", found \(shown(text))"
                throw SettingsError(.badValue, "\(setting.name): expected \(setting.expectation)\(found)", origin)
            }
            origins[setting.name] = origin
        case .entry(let map, let name):
            guard case .scalar(let text) = text else {
                throw SettingsError(.badValue, "\(map.name).\(name): expected a string, found a list", origin)
            }
            options[keyPath: map.member][name] = text
            origins["\(map.name).\(name)"] = origin
        }
    }

    private func shown(_ text: ValueText) -> String {
        switch text {
        case .scalar(let text): "\"\(withoutPasswords(text))\""
        case .list(let texts): "[" + texts.map(withoutPasswords).joined(separator: ", ") + "]"
        }
    }
}

/// A YAML file with settings: nested mappings, whose names are joined by dots, with scalars and lists of scalars.
public struct SettingsFile: Sendable {
    /// The file's name as the user typed it, for errors and sources.
    public let name: String
    let bytes: [UInt8]

    /// The size limit in bytes. No settings file is larger, and YAML can be slow to parse.
    public static let maximumSize = 1 << 20

    /// Creates a file from its content.
    /// - Throws: ``SettingsError`` of code `unreadableFile` if the content has more than ``maximumSize`` bytes.
    public init(name: String, bytes: [UInt8]) throws(SettingsError) {
        guard bytes.count <= Self.maximumSize else {
            throw SettingsError(.unreadableFile, "\(name): more than \(Self.maximumSize) bytes", nil)
        }
        self.name = name
        self.bytes = bytes
    }

    /// Reads a file.
    /// - Throws: ``SettingsError`` of code `unreadableFile` if the file does not exist, cannot be read, or is too
    ///   large.
    public init(path: String) throws(SettingsError) {
        guard let file = fopen(path, "re") else {
            throw SettingsError(.unreadableFile, "cannot open \(path): \(String(cString: strerror(errno)))", nil)
        }
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: Self.maximumSize + 1)
        let count = fread(&bytes, 1, bytes.count, file)
        guard ferror(file) == 0 else {
            throw SettingsError(.unreadableFile, "cannot read \(path): \(String(cString: strerror(errno)))", nil)
        }
        try self.init(name: path, bytes: Array(bytes.prefix(count)))
    }
}
