/// A declared setting and the type of its value:
///
///     static let grace = SettingKey("worker.grace", .duration(), default: .seconds(30), help: "Time to finish work.")
public struct SettingKey<Value: Sendable>: AnySettingKey {
    /// Parts in lower camel case with dots between them: `worker.memoryLimit`.
    public let name: String
    /// What it is for, in a sentence.
    public let help: String
    /// Whether its value is never printed.
    public let isSecret: Bool
    /// Taken when no layer sets it.
    public let defaultValue: Value
    let kind: SettingKind<Value>

    /// Declares a setting.
    public init(_ name: String, _ kind: SettingKind<Value>, default: Value, help: String, isSecret: Bool = false) {
        self.name = name
        self.kind = kind
        self.defaultValue = `default`
        self.help = help
        self.isSecret = isSecret
    }

    /// `a whole number from 1 to 64`.
    public var expectation: String { kind.expectation }
    /// The default in the form that reads back as it.
    public var defaultText: String { kind.write(defaultValue) }

    /// Reads a value; nil when it is not one.
    public func value(of text: SettingText) -> (any Sendable)? { kind.read(text).map { $0 as any Sendable } }
    /// The text of a value of this setting.
    public func text(of value: any Sendable) -> String { (value as? Value).map(kind.write) ?? "" }
}

/// What all settings have in common, whatever their type.
public protocol AnySettingKey: Sendable {
    /// The setting's name.
    var name: String { get }
    /// What it is for, in a sentence.
    var help: String { get }
    /// Whether its value is never printed.
    var isSecret: Bool { get }
    /// What its value must look like.
    var expectation: String { get }
    /// The default as text.
    var defaultText: String { get }
    /// Reads a value; nil when it is not one.
    func value(of text: SettingText) -> (any Sendable)?
    /// The text of a value of this setting.
    func text(of value: any Sendable) -> String
}

/// A value as a layer has it, before it is read.
public enum SettingText: Hashable, Sendable {
    /// A flag's value, a variable's, or a YAML scalar.
    case scalar(String)
    /// A YAML sequence.
    case list([String])
}
