import Formats

/// A declared option, flag or argument with the type of its value:
///
///     static let width = Parameter.option("width", short: "w", .number, as: "POINTS", help: "The display width.")
///     …
///     let points = parsed[width]  // Double?
public struct Parameter<Value: Sendable>: AnyParameter {
    /// The declaration without the type.
    public let declaration: ParameterDeclaration
    /// Creates the value from the parsed words.
    let assemble: @Sendable ([any Sendable]) -> Value
}

/// A type-erased parameter, for a command's list.
public protocol AnyParameter: Sendable {
    /// The declaration without the type.
    var declaration: ParameterDeclaration { get }
}

/// The properties of a parameter that parsing, help and completion need.
public struct ParameterDeclaration: Sendable {
    enum Shape: Equatable {
        case flag
        case option(isRepeated: Bool)
        case argument(least: Int, most: Int)
    }

    let shape: Shape
    /// The name: `width` for `--width`; `SOURCE` for an argument.
    let name: String
    let short: Character?
    let valueName: String
    let help: String
    let expectation: String
    let completion: Completion
    let read: @Sendable (String) -> (any Sendable)?

    /// The label: `--width`, or `SOURCE`.
    var label: String { isOption ? "--\(name)" : name }

    /// True for an option or a flag, which begins with dashes.
    var isOption: Bool {
        if case .argument = shape { false } else { true }
    }
}

extension Parameter<Bool> {
    /// A flag such as `--json`: true if given.
    public static func flag(_ name: String, short: Character? = nil, help: String) -> Self {
        let declaration = ParameterDeclaration(
            shape: .flag, name: name, short: short, valueName: "", help: help, expectation: "", completion: .none,
            read: { _ in true })
        return Parameter(declaration: declaration) { !$0.isEmpty }
    }
}

extension Parameter {
    /// An option such as `--width POINTS`: nil if not given, an error if given twice.
    public static func option<Wrapped>(
        _ name: String, short: Character? = nil, _ kind: ValueKind<Wrapped>, as valueName: String, help: String
    ) -> Self where Value == Wrapped? {
        let declaration = Self.declaration(.option(isRepeated: false), name, short, kind, valueName, help)
        return Parameter(declaration: declaration) { $0.first.map(cast) }
    }

    /// An option such as `--width POINTS` with a default; an error if given twice.
    public static func option(
        _ name: String, short: Character? = nil, _ kind: ValueKind<Value>, as valueName: String, default: Value,
        help: String
    ) -> Self {
        let declaration = Self.declaration(.option(isRepeated: false), name, short, kind, valueName, help)
        return Parameter(declaration: declaration) { $0.first.map(cast) ?? `default` }
    }

    /// A repeatable option such as `--tag TAG --tag TAG`: all values in order.
    public static func repeated<Element>(
        _ name: String, short: Character? = nil, _ kind: ValueKind<Element>, as valueName: String, help: String
    ) -> Self where Value == [Element] {
        let declaration = Self.declaration(.option(isRepeated: true), name, short, kind, valueName, help)
        return Parameter(declaration: declaration) { $0.map(cast) }
    }

    /// A required argument such as `SOURCE`.
    public static func argument(_ name: String, _ kind: ValueKind<Value>, help: String) -> Self {
        let declaration = Self.declaration(.argument(least: 1, most: 1), name, nil, kind, name, help)
        return Parameter(declaration: declaration) { cast($0[0]) }
    }

    /// An optional argument such as `[SOURCE]`: nil if not given.
    public static func optionalArgument<Wrapped>(
        _ name: String, _ kind: ValueKind<Wrapped>, help: String
    ) -> Self where Value == Wrapped? {
        let declaration = Self.declaration(.argument(least: 0, most: 1), name, nil, kind, name, help)
        return Parameter(declaration: declaration) { $0.first.map(cast) }
    }

    /// A list of arguments such as `SOURCE...`. It must come last.
    public static func arguments<Element>(
        _ name: String, _ kind: ValueKind<Element>, atLeast least: Int = 1, help: String
    ) -> Self where Value == [Element] {
        let declaration = Self.declaration(.argument(least: least, most: .max), name, nil, kind, name, help)
        return Parameter(declaration: declaration) { $0.map(cast) }
    }

    private static func declaration<Single>(
        _ shape: ParameterDeclaration.Shape, _ name: String, _ short: Character?, _ kind: ValueKind<Single>,
        _ valueName: String, _ help: String
    ) -> ParameterDeclaration {
        ParameterDeclaration(
            shape: shape, name: name, short: short, valueName: valueName, help: help, expectation: kind.expectation,
            completion: kind.completion, read: { kind.value(of: $0) })
    }
}

private func cast<Single>(_ value: any Sendable) -> Single {
    guard let value = value as? Single else { preconditionFailure("two parameters share a name but not a type") }
    return value
}
