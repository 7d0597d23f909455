/// The text form of a type's values, and its parser: for those of settings, and those of options and arguments of the
/// command line.
public struct ValueKind<Value: Sendable>: Sendable {
    /// The form of a value, for errors and help: `a whole number from 1 to 64`.
    public let expectation: String
    /// The completions that a shell offers for it.
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

    /// A kind of one's own, whose values are one scalar each.
    /// - Parameters:
    ///   - read: nil when the text is no value of this kind.
    ///   - write: gives a text that reads back as the value.
    public init(
        _ expectation: String, completion: Completion = .none, read: @escaping @Sendable (String) -> Value?,
        write: @escaping @Sendable (Value) -> String = { "\($0)" }
    ) {
        let reading: @Sendable (ValueText) -> Value? = { text in
            if case .scalar(let string) = text { read(string) } else { nil }
        }
        self.init(expectation, completion: completion, reading: reading, write: write)
    }

    /// Reads a value; nil when it is not one of this kind.
    public func value(of text: ValueText) -> Value? { read(text) }
    /// Reads one scalar; nil when it is no value of this kind.
    public func value(of text: String) -> Value? { read(.scalar(text)) }
    /// The text that reads back as the value.
    public func text(of value: Value) -> String { write(value) }
}

/// A value before it is read.
public enum ValueText: Hashable, Sendable {
    /// A word of the command line, a variable's value, or a YAML scalar.
    case scalar(String)
    /// A YAML sequence.
    case list([String])
}

/// The completions that a shell offers for a value.
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

// MARK: Kinds made of others

extension ValueKind {
    /// Several values: a YAML sequence, or one text with commas between them.
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

    /// A value that may be left out; set to nothing it is nil.
    public static func optional<Wrapped>(_ kind: ValueKind<Wrapped>) -> Self where Value == Wrapped? {
        let reading: @Sendable (ValueText) -> Value? = { text in
            text == .scalar("") ? .some(nil) : kind.read(text).map { .some($0) }
        }
        return ValueKind("\(kind.expectation), or nothing", reading: reading) { $0.map(kind.write) ?? "" }
    }

    /// A value that is nil where it is written as 0.
    public static func zeroAsNil<Wrapped: AdditiveArithmetic>(_ kind: ValueKind<Wrapped>) -> Self
    where Value == Wrapped? {
        kind.converted {
            $0 == .zero ? nil : $0
        } back: {
            $0 ?? .zero
        }
    }

    /// The same texts for values of another type.
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
    /// A file; whether there is one is the caller's affair.
    public static var file: Self { ValueKind("a file", completion: .files) { $0 } }
    /// A folder; whether there is one is the caller's affair.
    public static var folder: Self { ValueKind("a folder", completion: .folders) { $0 } }

    /// A path from the root on, which nowhere climbs.
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
    /// One of the cases of an enumeration, by their raw values.
    public static var oneOf: Self {
        let words = Value.allCases.map(\.rawValue)
        return ValueKind(
            "one of \(words.joined(separator: ", "))", completion: .words(words), read: { Value(rawValue: $0) },
            write: \.rawValue)
    }
}

extension ValueKind<Bool> {
    /// `true` or `false`; `yes`, `no`, `on`, `off`, `1` and `0` are understood.
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
    /// `host:port`, with an IPv6 address in brackets.
    public static var hostPort: Self { ValueKind("host:port") { HostPort($0) } }
}

// MARK: Numbers and quantities

extension ValueKind<Int> {
    /// A whole number.
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

    /// A number.
    public static func number(in range: ClosedRange<Double>) -> Self {
        ValueKind("a number from \(range.lowerBound) to \(range.upperBound)") {
            Double($0).flatMap { range.contains($0) ? $0 : nil }
        }
    }

    /// A whole number.
    public static func whole(in range: ClosedRange<Int>) -> Self {
        ValueKind<Int>.integer(in: range).converted {
            Double($0)
        } back: {
            Int($0)
        }
    }

    /// Seconds, written as a duration of whole milliseconds.
    public static func seconds(in range: ClosedRange<Duration>) -> Self {
        ValueKind<Duration>.duration(in: range).converted {
            $0 / .seconds(1)
        } back: {
            .milliseconds(Int(($0 * 1000).rounded()))
        }
    }
}

extension ValueKind<Duration> {
    /// A span of whole `ms`, `s`, `m`, `h` and `d`, the larger first: `500ms`, `30s`, `1h30m`, `1d`; `0` needs no unit.
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
