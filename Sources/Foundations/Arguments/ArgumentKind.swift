/// How the value of an option or an argument is read.
public struct ArgumentKind<Value: Sendable>: Sendable {
    /// What a value must look like, for errors: `a whole number from 1 to 4`.
    public let expectation: String
    let completion: Completion
    let read: @Sendable (String) -> Value?

    /// A kind of one's own.
    /// - Parameter read: nil when the text is no value of this kind.
    public init(
        _ expectation: String, completion: Completion = .none, read: @escaping @Sendable (String) -> Value?
    ) {
        self.expectation = expectation
        self.completion = completion
        self.read = read
    }
}

/// What a shell offers for a value.
public enum Completion: Equatable, Sendable {
    /// Nothing: any text may stand there.
    case none
    /// One of these.
    case words([String])
    /// Files and folders.
    case files
    /// Folders.
    case folders
}

extension ArgumentKind<String> {
    /// Any text.
    public static var text: Self { ArgumentKind("a text") { $0 } }
    /// A file; whether there is one is the caller's affair.
    public static var file: Self { ArgumentKind("a file", completion: .files) { $0 } }
    /// A folder; whether there is one is the caller's affair.
    public static var folder: Self { ArgumentKind("a folder", completion: .folders) { $0 } }

    /// One of these words.
    public static func oneOf(_ words: [String]) -> Self {
        ArgumentKind("one of \(words.joined(separator: ", "))", completion: .words(words)) { word in
            words.contains(word) ? word : nil
        }
    }
}

extension ArgumentKind where Value: RawRepresentable & CaseIterable, Value.RawValue == String {
    /// One of the cases of an enumeration, by their raw values.
    public static var oneOf: Self {
        let words = Value.allCases.map(\.rawValue)
        return ArgumentKind("one of \(words.joined(separator: ", "))", completion: .words(words)) {
            Value(rawValue: $0)
        }
    }
}

extension ArgumentKind<Int> {
    /// A whole number.
    public static func integer(in range: ClosedRange<Int> = .min ... .max) -> Self {
        let expectation =
            switch (range.lowerBound, range.upperBound) {
            case (.min, .max): "a whole number"
            case (let low, .max): "a whole number of at least \(low)"
            case (let low, let high): "a whole number from \(low) to \(high)"
            }
        return ArgumentKind(expectation) { Int($0).flatMap { range.contains($0) ? $0 : nil } }
    }
}

extension ArgumentKind<Double> {
    /// A finite number.
    public static var number: Self { ArgumentKind("a number") { Double($0).flatMap { $0.isFinite ? $0 : nil } } }
}
