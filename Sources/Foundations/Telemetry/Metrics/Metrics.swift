import Synchronization
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

/// A number that only grows, from 0 at the start of the process.
public final class Counter: Sendable {
    private let count = Atomic<UInt64>(0)

    init() {}

    /// Counts.
    public func add(_ amount: Int = 1) {
        precondition(amount >= 0, "a counter only grows")
        count.wrappingAdd(UInt64(amount), ordering: .relaxed)
    }

    /// What was counted so far.
    public var value: UInt64 { count.load(ordering: .relaxed) }
}

/// A number that goes up and down, 0 at first.
public final class Gauge: Sendable {
    private let bits = Atomic<UInt64>(0)

    init() {}

    /// Replaces the number.
    public func set(_ value: Double) {
        bits.store(value.bitPattern, ordering: .relaxed)
    }

    /// Adds to the number, or takes from it.
    public func add(_ amount: Double) {
        var old = bits.load(ordering: .relaxed)
        while true {
            let new = (Double(bitPattern: old) + amount).bitPattern
            let (exchanged, found) = bits.weakCompareExchange(expected: old, desired: new, ordering: .relaxed)
            if exchanged { return }
            old = found
        }
    }

    /// The number now.
    public var value: Double { Double(bitPattern: bits.load(ordering: .relaxed)) }
}

/// Counts observed values by size.
public final class Histogram: Sendable {
    /// Bounds for what takes between a millisecond and a minute, in seconds.
    public static let seconds: [Double] = [
        0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
    ]

    let bounds: [Double]
    /// One for each bound, and one for what is above all of them. They do not overlap; Prometheus' do.
    private let buckets: [Counter]
    private let total = Gauge()

    init(bounds: [Double]) {
        precondition(zip(bounds, bounds.dropFirst()).allSatisfy(<), "bounds must ascend")
        precondition(bounds.allSatisfy(\.isFinite), "infinity is added by itself")
        self.bounds = bounds
        buckets = (0...bounds.count).map { _ in Counter() }
    }

    /// Counts one value.
    public func observe(_ value: Double) {
        buckets[bounds.firstIndex { value <= $0 } ?? bounds.count].add()
        total.add(value)
    }

    /// Counts one span, in seconds.
    public func observe(_ span: Duration) {
        observe(span / .seconds(1))
    }

    /// The sum of all values.
    public var sum: Double { total.value }

    /// How many values were at most each bound, and at last how many there were at all.
    public var cumulativeCounts: [UInt64] {
        var count: UInt64 = 0
        return buckets.map { bucket in
            count += bucket.value
            return count
        }
    }
}

/// A number that is looked up whenever it is wanted.
final class Reading: Sendable {
    private let read: Lock<@Sendable () -> Double>

    init(_ read: @escaping @Sendable () -> Double) { self.read = Lock(read) }

    /// Has it read in another way from now on.
    func replace(_ read: @escaping @Sendable () -> Double) { self.read.withLock { $0 = read } }

    /// The number now.
    var value: Double { read.withLock { $0 }() }
}
