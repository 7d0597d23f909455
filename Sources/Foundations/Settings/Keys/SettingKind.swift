/// How a setting's value is written and read.
public struct SettingKind<Value: Sendable>: Sendable {
    /// What a value must look like, for errors and help: `a whole number from 1 to 64`.
    public let expectation: String
    /// Nil when the text is no value of this kind.
    let read: @Sendable (SettingText) -> Value?
    /// Gives a text that reads back as the value.
    let write: @Sendable (Value) -> String

    /// Reads one scalar; nil when it is no value of this kind.
    public func value(of text: String) -> Value? { read(.scalar(text)) }

    private init(
        _ expectation: String, read: @escaping @Sendable (SettingText) -> Value?,
        write: @escaping @Sendable (Value) -> String
    ) {
        self.expectation = expectation
        self.read = read
        self.write = write
    }

    /// A kind whose values are one scalar each.
    public init(
        _ expectation: String, scalar: @escaping @Sendable (String) -> Value?,
        write: @escaping @Sendable (Value) -> String
    ) {
        let read: @Sendable (SettingText) -> Value? = { text in
            if case .scalar(let string) = text { scalar(string) } else { nil }
        }
        self.init(expectation, read: read, write: write)
    }

    /// Several values: a YAML sequence, or one text with commas between them.
    public static func list<Element>(of element: SettingKind<Element>) -> Self where Value == [Element] {
        let read: @Sendable (SettingText) -> Value? = { text in
            let texts =
                switch text {
                case .list(let texts): texts
                case .scalar(let text) where trimmed(text).isEmpty: [String]()
                case .scalar(let text): text.split(separator: ",", omittingEmptySubsequences: false).map { trimmed($0) }
                }
            let values = texts.compactMap { element.read(.scalar($0)) }
            return values.count == texts.count ? values : nil
        }
        return SettingKind("a list, each \(element.expectation)", read: read) { values in
            values.map(element.write).joined(separator: ",")
        }
    }

    /// A value that may be left out; set to nothing it is nil.
    public static func optional<Wrapped>(_ kind: SettingKind<Wrapped>) -> Self where Value == Wrapped? {
        let read: @Sendable (SettingText) -> Value? = { text in
            text == .scalar("") ? .some(nil) : kind.read(text).map { .some($0) }
        }
        return SettingKind("\(kind.expectation), or nothing", read: read) { $0.map(kind.write) ?? "" }
    }
}

extension SettingKind {
    /// A value that is nil where it is written as 0.
    public static func zeroAsNil<Wrapped: AdditiveArithmetic>(_ kind: SettingKind<Wrapped>) -> Self
    where Value == Wrapped? {
        SettingKind(
            kind.expectation,
            read: { text in kind.read(text).map { $0 == .zero ? nil : $0 } }, write: { kind.write($0 ?? .zero) })
    }
}

extension SettingKind<String> {
    /// Any text.
    public static var string: Self { SettingKind("a text", scalar: { $0 }, write: { $0 }) }

    /// A path from the root on, which nowhere climbs.
    public static var absolutePath: Self {
        SettingKind(
            "an absolute path without ..",
            scalar: { $0.hasPrefix("/") && !$0.split(separator: "/").contains("..") ? $0 : nil }, write: { $0 })
    }
}

extension SettingKind<Int> {
    /// A whole number.
    public static func integer(in range: ClosedRange<Int> = .min ... .max) -> Self {
        let expectation =
            switch (range.lowerBound, range.upperBound) {
            case (.min, .max): "a whole number"
            case (let low, .max): "a whole number of at least \(low)"
            case (let low, let high): "a whole number from \(low) to \(high)"
            }
        return SettingKind(
            expectation, scalar: { Int($0).flatMap { range.contains($0) ? $0 : nil } }, write: \.description)
    }

    /// A number of bytes: `1048576`, `512MiB`, `10GB`. `Ki` to `Ti`, with or without a `B`, count by 1024; `kB` to `TB`
    /// by 1000.
    public static func byteSize(in range: ClosedRange<Int> = 0 ... .max) -> Self {
        let limits = range == 0 ... .max ? "" : " from \(byteText(range.lowerBound)) to \(byteText(range.upperBound))"
        return SettingKind(
            "a byte size such as 512MiB\(limits)",
            scalar: { byteCount(of: $0).flatMap { range.contains($0) ? $0 : nil } }, write: byteText)
    }
}

extension SettingKind<Double> {
    /// A number.
    public static func double(in range: ClosedRange<Double>) -> Self {
        SettingKind(
            "a number from \(range.lowerBound) to \(range.upperBound)",
            scalar: { Double($0).flatMap { range.contains($0) ? $0 : nil } }, write: \.description)
    }

    /// A whole number.
    public static func whole(in range: ClosedRange<Int>) -> Self {
        let kind = SettingKind<Int>.integer(in: range)
        return SettingKind(kind.expectation, read: { kind.read($0).map(Double.init) }, write: { kind.write(Int($0)) })
    }

    /// Seconds, written as a duration of whole milliseconds.
    public static func seconds(in range: ClosedRange<Duration>) -> Self {
        let kind = SettingKind<Duration>.duration(in: range)
        return SettingKind(
            kind.expectation, read: { kind.read($0).map { $0 / .seconds(1) } },
            write: { kind.write(.milliseconds(Int(($0 * 1000).rounded()))) })
    }
}

extension SettingKind<Bool> {
    /// `true` or `false`; `yes`, `no`, `on`, `off`, `1` and `0` are understood.
    public static var bool: Self {
        SettingKind(
            "true or false",
            scalar: { text in
                switch text.lowercased() {
                case "true", "yes", "on", "1": true
                case "false", "no", "off", "0": false
                default: nil
                }
            }, write: \.description)
    }
}

extension SettingKind<Duration> {
    /// A span of whole `ms`, `s`, `m`, `h` and `d`, the larger first: `500ms`, `30s`, `1h30m`, `1d`; `0` needs no unit.
    public static func duration(in range: ClosedRange<Duration> = .zero ... .seconds(1 << 40)) -> Self {
        let isLimited = range != .zero ... .seconds(1 << 40)
        let limits = isLimited ? " from \(durationText(range.lowerBound)) to \(durationText(range.upperBound))" : ""
        return SettingKind(
            "a duration such as 500ms, 30s, 5m or 1d\(limits)",
            scalar: { span(of: $0).flatMap { range.contains($0) ? $0 : nil } }, write: durationText)
    }
}

extension SettingKind<HostPort> {
    /// `host:port`, with an IPv6 address in brackets.
    public static var hostPort: Self {
        SettingKind("host:port", scalar: { HostPort($0) }, write: \.description)
    }
}

extension SettingKind where Value: RawRepresentable & CaseIterable, Value.RawValue == String {
    /// One of the cases of an enumeration, by their raw options.
    public static var oneOf: Self {
        let names = Value.allCases.map(\.rawValue).joined(separator: ", ")
        return SettingKind("one of \(names)", scalar: { Value(rawValue: $0) }, write: \.rawValue)
    }
}

private func trimmed(_ text: some StringProtocol) -> String {
    let isSpace: (Character) -> Bool = { $0 == " " || $0 == "\t" }
    let start = text.drop(while: isSpace)
    return String(start[..<(start.lastIndex { !isSpace($0) }.map(start.index(after:)) ?? start.startIndex)])
}
