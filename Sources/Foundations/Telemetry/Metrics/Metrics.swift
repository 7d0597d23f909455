import Threads

/// The numbers of a process, by name and labels.
///
/// Ask once for a counter, gauge or histogram and keep it: counting is then one atomic addition. The same name and
/// labels give the same one again. A name has one kind, one help text and one set of label names; breaking that is a
/// mistake in the code and traps, as does a name that Prometheus does not allow.
public final class Metrics: Sendable {
    /// Names and values that tell series of one metric apart.
    public typealias Labels = KeyValuePairs<String, String>

    private let families = Lock<[String: Family]>([:])

    /// An empty registry.
    public init() {}

    /// A number that only grows. Its name ends in `_total`, by custom.
    public func counter(_ name: String, help: String, labels: Labels = [:]) -> Counter {
        guard case .counter(let counter) = series(name, help, labels, .counter, { .counter(Counter()) }) else {
            preconditionFailure("\(name) is no counter")
        }
        return counter
    }

    /// A number that goes up and down.
    public func gauge(_ name: String, help: String, labels: Labels = [:]) -> Gauge {
        guard case .gauge(let gauge) = series(name, help, labels, .gauge, { .gauge(Gauge()) }) else {
            preconditionFailure("\(name) is no gauge")
        }
        return gauge
    }

    /// How often observed values fell below each of `bounds`, and their sum.
    /// - Parameter bounds: upper bounds, ascending, each part of its bucket; infinity is added.
    public func histogram(
        _ name: String, help: String, labels: Labels = [:], bounds: [Double] = Histogram.seconds
    ) -> Histogram {
        let found = series(name, help, labels, .histogram) { .histogram(Histogram(bounds: bounds)) }
        guard case .histogram(let histogram) = found, histogram.bounds == bounds else {
            preconditionFailure("\(name) is no histogram of these bounds")
        }
        return histogram
    }

    /// A number that is known elsewhere: it is read when somebody asks for all of them, and costs nothing until then. Given again, the newer
    /// way to read it counts.
    /// - Parameter read: called on the thread of whoever asks, without any lock.
    public func reading(
        _ kind: ReadingKind, _ name: String, help: String, labels: Labels = [:],
        _ read: @escaping @Sendable () -> Double
    ) {
        let found = series(name, help, labels, kind == .counter ? .counter : .gauge) { .reading(Reading(read)) }
        guard case .reading(let reading) = found else { preconditionFailure("\(name) is counted, not read") }
        reading.replace(read)
    }

    /// What a number that is read may do.
    public enum ReadingKind: Sendable {
        /// It only grows.
        case counter
        /// It goes up and down.
        case gauge
    }

    /// All of it in Prometheus' text format 0.0.4 (`text/plain; version=0.0.4; charset=utf-8`), by name.
    public var prometheusText: [UInt8] {
        let families = families.withLock { $0 }
        var text = ""
        for (name, family) in families.sorted(by: { $0.key < $1.key }) { family.write(name, to: &text) }
        return Array(text.utf8)
    }

    private func series(
        _ name: String, _ help: String, _ labels: Labels, _ kind: Family.Kind, _ make: () -> Series
    ) -> Series {
        precondition(isName(name, colons: true), "\(name) is no name of a metric")
        let labels = labels.map { Label(name: $0.key, value: $0.value) }.sorted { $0.name < $1.name }
        for label in labels {
            let isKept = label.name == "le" || label.name.hasPrefix("__")
            precondition(isName(label.name, colons: false) && !isKept, "\(label.name) is no name for a label")
        }
        return families.withLock { families in
            var family = families[name] ?? Family(kind: kind, help: help, labelNames: labels.map(\.name))
            precondition(
                family.kind == kind && family.help == help && family.labelNames == labels.map(\.name),
                "\(name) was made with another kind, help or set of labels")
            if let series = family.series[labels] { return series }
            let series = make()
            family.series[labels] = series
            families[name] = family
            return series
        }
    }
}

/// All series of one name.
struct Family: Sendable {
    enum Kind: String {
        case counter, gauge, histogram
    }

    let kind: Kind
    let help: String
    let labelNames: [String]
    var series: [[Label]: Series] = [:]
}

enum Series: Sendable {
    case counter(Counter)
    case gauge(Gauge)
    case histogram(Histogram)
    case reading(Reading)
}

struct Label: Hashable {
    let name: String
    let value: String
}

private func isName(_ name: String, colons: Bool) -> Bool {
    func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }
    func isLetter(_ byte: UInt8) -> Bool { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20) }
    guard let first = name.utf8.first, !isDigit(first) else { return false }
    return name.utf8.allSatisfy { byte in
        isDigit(byte) || isLetter(byte) || byte == UInt8(ascii: "_") || (colons && byte == UInt8(ascii: ":"))
    }
}
