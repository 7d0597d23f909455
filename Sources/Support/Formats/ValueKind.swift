/// The text form of a type's values, with its parser. Used for settings, and for options and arguments of the command
/// line.
public struct ValueKind<Value: Sendable>: Sendable {
    /// The form of a value, for errors and help: `a whole number from 1 to 64`.
    public let expectation: String
    /// The completions that a shell offers for the value.
    public let completion: Completion
    private let read: @Sendable (ValueText) -> Value?
    private let write: @Sendable (Value) -> String

    private init(
        _ expectation: String, completion: Completion = .none, reading: @escaping @Sendable (ValueText) -> Value?,
        write: @escaping @Sendable (Value) -> String
    ) {
        self.expectation = expectation
        self.completion = completion
        self.read = reading
        self.write = write
    }

    /// Creates a custom kind whose values are single scalars.
    /// - Parameters:
    ///   - read: A parser that returns nil for an invalid text.
    ///   - write: A formatter whose text parses back to the value.
    public init(
        _ expectation: String, completion: Completion = .none, read: @escaping @Sendable (String) -> Value?,
        write: @escaping @Sendable (Value) -> String = { "\($0)" }
    ) {
        let reading: @Sendable (ValueText) -> Value? = { text in
            if case .scalar(let string) = text { read(string) } else { nil }
        }
        self.init(expectation, completion: completion, reading: reading, write: write)
    }

    /// Parses a value; nil if it is invalid.
    public func value(of text: ValueText) -> Value? { read(text) }
    /// Parses a scalar; nil if it is invalid.
    public func value(of text: String) -> Value? { read(.scalar(text)) }
    /// Returns the text that parses back to the value.
    public func text(of value: Value) -> String { write(value) }
}

/// The unparsed form of a value.
public enum ValueText: Hashable, Sendable {
    /// A word of the command line, the value of a variable, or a YAML scalar.
    case scalar(String)
    /// A YAML sequence.
    case list([String])
}

/// The completions that a shell offers for a value.
public enum Completion: Equatable, Sendable {
    /// No completions: any text is allowed.
    case none
    /// One of these words.
    case words([String])
    /// Files and folders.
    case files
    /// Folders only.
    case folders
}

// MARK: Kinds made of others

extension ValueKind {
    /// A list of values: a YAML sequence, or one text with commas between the values.
    public static func list<Element>(of element: ValueKind<Element>) -> Self where Value == [Element] {
        let reading: @Sendable (ValueText) -> Value? = { text in
            let texts =
                switch text {
                case .list(let texts): texts
                case .scalar(let text) where trimmed(text).isEmpty: [String]()
                case .scalar(let text): text.split(separator: ",", omittingEmptySubsequences: false).map { trimmed($0) }
                }
            let values = texts.compactMap { element.value(of: $0) }
            return values.count == texts.count ? values : nil
        }
        return ValueKind("a list, each \(element.expectation)", reading: reading) { values in
            values.map(element.write).joined(separator: ",")
        }
    }

    /// An optional value; an empty text is nil.
    public static func optional<Wrapped>(_ kind: ValueKind<Wrapped>) -> Self where Value == Wrapped? {
        let reading: @Sendable (ValueText) -> Value? = { text in
            text == .scalar("") ? .some(nil) : kind.read(text).map { .some($0) }
        }
        return ValueKind("\(kind.expectation), or nothing", reading: reading) { $0.map(kind.write) ?? "" }
    }

    /// An optional value that is nil if written as 0.
    public static func zeroAsNil<Wrapped: AdditiveArithmetic>(_ kind: ValueKind<Wrapped>) -> Self
    where Value == Wrapped? {
        kind.converted {
            $0 == .zero ? nil : $0
        } back: {
            $0 ?? .zero
        }
    }

    /// The same text form for values of another type.
    private func converted<Other>(
        _ convert: @escaping @Sendable (Value) -> Other, back: @escaping @Sendable (Other) -> Value
    ) -> ValueKind<Other> {
        ValueKind<Other>(
            expectation, completion: completion, reading: { read($0).map(convert) }, write: { write(back($0)) })
    }
}

// MARK: Words

extension ValueKind<String> {
    /// Any text.
    public static var text: Self { ValueKind("a text") { $0 } }
    /// A file, which need not exist.
    public static var file: Self { ValueKind("a file", completion: .files) { $0 } }
    /// A folder, which need not exist.
    public static var folder: Self { ValueKind("a folder", completion: .folders) { $0 } }

    /// An absolute path without `..` segments.
    public static var absolutePath: Self {
        ValueKind("an absolute path without ..") {
            $0.hasPrefix("/") && !$0.split(separator: "/").contains("..") ? $0 : nil
        }
    }

    /// One of these words.
    public static func oneOf(_ words: [String]) -> Self {
        ValueKind("one of \(words.joined(separator: ", "))", completion: .words(words)) { word in
            words.contains(word) ? word : nil
        }
    }
}

extension ValueKind where Value: RawRepresentable & CaseIterable, Value.RawValue == String {
    /// One of the cases of an enumeration, by raw value.
    public static var oneOf: Self {
        let words = Value.allCases.map(\.rawValue)
        return ValueKind(
            "one of \(words.joined(separator: ", "))", completion: .words(words), read: { Value(rawValue: $0) },
            write: \.rawValue)
    }
}

extension ValueKind<Bool> {
    /// A Boolean: `true` or `false`. `yes`, `no`, `on`, `off`, `1` and `0` are accepted too.
    public static var bool: Self {
        ValueKind("true or false") { text in
            switch text.lowercased() {
            case "true", "yes", "on", "1": true
            case "false", "no", "off", "0": false
            default: nil
            }
        }
    }
}

extension ValueKind<HostPort> {
    /// A host and port: `host:port`, with an IPv6 address in brackets.
    public static var hostPort: Self { ValueKind("host:port") { HostPort($0) } }
}

// MARK: Numbers and quantities

extension ValueKind<Int> {
    /// A whole number in a range.
    public static func integer(in range: ClosedRange<Int> = .min ... .max) -> Self {
        let expectation =
            switch (range.lowerBound, range.upperBound) {
            case (.min, .max): "a whole number"
            case (let low, .max): "a whole number of at least \(low)"
            case (let low, let high): "a whole number from \(low) to \(high)"
            }
        return ValueKind(expectation) { Int($0).flatMap { range.contains($0) ? $0 : nil } }
    }

    /// A number of bytes: `1048576`, `512MiB`, `10GB`. `Ki` to `Ti`, with or without a `B`, count by 1024; `kB` to `TB`
    /// by 1000.
    public static func byteSize(in range: ClosedRange<Int> = 0 ... .max) -> Self {
        let limits = range == 0 ... .max ? "" : " from \(byteText(range.lowerBound)) to \(byteText(range.upperBound))"
        return ValueKind(
            "a byte size such as 512MiB\(limits)",
            read: { byteCount(of: $0).flatMap { range.contains($0) ? $0 : nil } }, write: byteText)
    }
}

extension ValueKind<Double> {
    /// A finite number.
    public static var number: Self { ValueKind("a number") { Double($0).flatMap { $0.isFinite ? $0 : nil } } }

    /// A number in a range.
    public static func number(in range: ClosedRange<Double>) -> Self {
        ValueKind("a number from \(range.lowerBound) to \(range.upperBound)") {
            Double($0).flatMap { range.contains($0) ? $0 : nil }
        }
    }

    /// A whole number in a range, as a `Double`.
    public static func whole(in range: ClosedRange<Int>) -> Self {
        ValueKind<Int>.integer(in: range).converted {
            Double($0)
        } back: {
            Int($0)
        }
    }

    /// A duration of whole milliseconds, as seconds.
    public static func seconds(in range: ClosedRange<Duration>) -> Self {
        ValueKind<Duration>.duration(in: range).converted {
            $0 / .seconds(1)
        } back: {
            .milliseconds(Int(($0 * 1000).rounded()))
        }
    }
}

extension ValueKind<Duration> {
    /// A duration in whole `ms`, `s`, `m`, `h` and `d`, larger units first: `500ms`, `30s`, `1h30m`, `1d`. `0` needs no
    /// unit.
    public static func duration(in range: ClosedRange<Duration> = .zero ... .seconds(1 << 40)) -> Self {
        let isLimited = range != .zero ... .seconds(1 << 40)
        let limits = isLimited ? " from \(durationText(range.lowerBound)) to \(durationText(range.upperBound))" : ""
        return ValueKind(
            "a duration such as 500ms, 30s, 5m or 1d\(limits)",
            read: { span(of: $0).flatMap { range.contains($0) ? $0 : nil } }, write: durationText)
    }
}

private func trimmed(_ text: some StringProtocol) -> String {
    let isSpace: (Character) -> Bool = { $0 == " " || $0 == "\t" }
    let start = text.drop(while: isSpace)
    return String(start[..<(start.lastIndex { !isSpace($0) }.map(start.index(after:)) ?? start.startIndex)])
}
