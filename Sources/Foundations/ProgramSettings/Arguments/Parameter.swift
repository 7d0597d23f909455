import Formats

/// A declared option, flag or argument, and the type of what is read from it:
///
///     static let width = Parameter.option("width", short: "w", .number, as: "POINTS", help: "The display width.")
///     …
///     let points = parsed[width]  // Double?
public struct Parameter<Value: Sendable>: AnyParameter {
    /// The declaration without the type.
    public let declaration: ParameterDeclaration
    /// Makes the value from what was given, each already read.
    let assemble: @Sendable ([any Sendable]) -> Value
}

/// A parameter whatever its type, for a command's list.
public protocol AnyParameter: Sendable {
    /// The declaration without the type.
    var declaration: ParameterDeclaration { get }
}

/// What parsing, help and completion need to know of a parameter.
public struct ParameterDeclaration: Sendable {
    enum Shape: Equatable {
        case flag
        case option(isRepeated: Bool)
        case argument(least: Int, most: Int)
    }

    let shape: Shape
    /// `width` for `--width`; `SOURCE` for an argument.
    let name: String
    let short: Character?
    let valueName: String
    let help: String
    let expectation: String
    let completion: Completion
    let read: @Sendable (String) -> (any Sendable)?

    /// `--width`, or `SOURCE`.
    var label: String { isOption ? "--\(name)" : name }

    /// Whether it starts with dashes: an option or a flag.
    var isOption: Bool {
        if case .argument = shape { false } else { true }
    }
}

extension Parameter<Bool> {
    /// `--json`: true when it is given.
    public static func flag(_ name: String, short: Character? = nil, help: String) -> Self {
        let declaration = ParameterDeclaration(
            shape: .flag, name: name, short: short, valueName: "", help: help, expectation: "", completion: .none,
            read: { _ in true })
        return Parameter(declaration: declaration) { !$0.isEmpty }
    }
}

extension Parameter {
    /// `--width POINTS`: nil when it is not given, refused when it is given twice.
    public static func option<Wrapped>(
        _ name: String, short: Character? = nil, _ kind: ValueKind<Wrapped>, as valueName: String, help: String
    ) -> Self where Value == Wrapped? {
        let declaration = Self.declaration(.option(isRepeated: false), name, short, kind, valueName, help)
        return Parameter(declaration: declaration) { $0.first.map(cast) }
    }

    /// `--width POINTS` with a value for when it is not given; refused when it is given twice.
    public static func option(
        _ name: String, short: Character? = nil, _ kind: ValueKind<Value>, as valueName: String, default: Value,
        help: String
    ) -> Self {
        let declaration = Self.declaration(.option(isRepeated: false), name, short, kind, valueName, help)
        return Parameter(declaration: declaration) { $0.first.map(cast) ?? `default` }
    }

    /// `--tag TAG --tag TAG`: all that are given, in order.
    public static func repeated<Element>(
        _ name: String, short: Character? = nil, _ kind: ValueKind<Element>, as valueName: String, help: String
    ) -> Self where Value == [Element] {
        let declaration = Self.declaration(.option(isRepeated: true), name, short, kind, valueName, help)
        return Parameter(declaration: declaration) { $0.map(cast) }
    }

    /// `SOURCE`: must be given.
    public static func argument(_ name: String, _ kind: ValueKind<Value>, help: String) -> Self {
        let declaration = Self.declaration(.argument(least: 1, most: 1), name, nil, kind, name, help)
        return Parameter(declaration: declaration) { cast($0[0]) }
    }

    /// `[SOURCE]`: nil when it is not given.
    public static func optionalArgument<Wrapped>(
        _ name: String, _ kind: ValueKind<Wrapped>, help: String
    ) -> Self where Value == Wrapped? {
        let declaration = Self.declaration(.argument(least: 0, most: 1), name, nil, kind, name, help)
        return Parameter(declaration: declaration) { $0.first.map(cast) }
    }

    /// `SOURCE...`: as many as there are. It stands last.
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
    guard let value = value as? Single else { preconditionFailure("two parameters of one name and different types") }
    return value
}
