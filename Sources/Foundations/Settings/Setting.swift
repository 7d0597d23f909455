import Values

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
