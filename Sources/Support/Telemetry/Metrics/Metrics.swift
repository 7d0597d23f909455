import Concurrency
import Synchronization

/// The metrics of a process, by name and labels.
///
/// Look up a counter, gauge or histogram once and store it: updating it is one atomic addition. The same name and
/// labels return the same object. A name has one kind, one help text and one set of label names. Violating that is a
/// programming error and traps, as does a name that Prometheus does not allow.
public final class Metrics: Sendable {
    /// Label names and values that distinguish the series of a metric.
    public typealias Labels = KeyValuePairs<String, String>

    private let families = Lock<[String: Family]>([:])

    /// Creates an empty registry.
    public init() {}

    /// Returns a counter, which only increases. By convention its name ends in `_total`.
    public func counter(_ name: String, help: String, labels: Labels = [:]) -> Counter {
        guard case .counter(let counter) = series(name, help, labels, .counter, { .counter(Counter()) }) else {
            preconditionFailure("\(name) is not a counter")
        }
        return counter
    }

    /// Returns a gauge, which can increase and decrease.
    public func gauge(_ name: String, help: String, labels: Labels = [:]) -> Gauge {
        guard case .gauge(let gauge) = series(name, help, labels, .gauge, { .gauge(Gauge()) }) else {
            preconditionFailure("\(name) is not a gauge")
        }
        return gauge
    }

    /// Returns a histogram, which counts observed values in buckets and sums them.
    /// - Parameter bounds: The inclusive upper bounds of the buckets, ascending. Infinity is added.
    public func histogram(
        _ name: String, help: String, labels: Labels = [:], bounds: [Double] = Histogram.seconds
    ) -> Histogram {
        let found = series(name, help, labels, .histogram) { .histogram(Histogram(bounds: bounds)) }
        guard case .histogram(let histogram) = found, histogram.bounds == bounds else {
            preconditionFailure("\(name) is not a histogram with these bounds")
        }
        return histogram
    }

    /// Registers a metric whose value is read at each scrape and costs nothing in between. A later registration
    /// replaces the closure.
    /// - Parameter read: A closure that returns the value. It is called on the scraping thread, without any lock held.
    public func observable(
        _ kind: ReadingKind, _ name: String, help: String, labels: Labels = [:],
        _ read: @escaping @Sendable () -> Double
    ) {
        let found = series(name, help, labels, kind == .counter ? .counter : .gauge) { .reading(Reading(read)) }
        guard case .reading(let reading) = found else { preconditionFailure("\(name) was not registered as a reading") }
        reading.replace(read)
    }

    /// The kind of a metric that is read.
    public enum ReadingKind: Sendable {
        /// The value only increases.
        case counter
        /// The value can increase and decrease.
        case gauge
    }

    /// Removes the series of a metric that have a label with this value. Objects that were returned for them no longer
    /// belong to the registry.
    public func remove(_ name: String, where label: String, is value: String) {
        let label = Label(name: label, value: value)
        families.withLock { families in
            guard var family = families[name] else { return }
            family.series = family.series.filter { !$0.key.contains(label) }
            families[name] = family
        }
    }

    /// All metrics in Prometheus' text format 0.0.4 (`text/plain; version=0.0.4; charset=utf-8`), ordered by name.
    public var prometheusText: [UInt8] {
        let families = families.withLock { $0 }
        var text = ""
        for (name, family) in families.sorted(by: { $0.key < $1.key }) { family.write(name, to: &text) }
        return Array(text.utf8)
    }

    private func series(
        _ name: String, _ help: String, _ labels: Labels, _ kind: Family.Kind, _ make: () -> Series
    ) -> Series {
        precondition(isName(name, colons: true), "\(name) is not a valid metric name")
        let labels = labels.map { Label(name: $0.key, value: $0.value) }.sorted { $0.name < $1.name }
        for label in labels {
            let isKept = label.name == "le" || label.name.hasPrefix("__")
            precondition(isName(label.name, colons: false) && !isKept, "\(label.name) is not a valid label name")
        }
        return families.withLock { families in
            var family = families[name] ?? Family(kind: kind, help: help, labelNames: labels.map(\.name))
            precondition(
                family.kind == kind && family.help == help && family.labelNames == labels.map(\.name),
                "\(name) was registered with another kind, help or set of labels")
            if let series = family.series[labels] { return series }
            let series = make()
            family.series[labels] = series
            families[name] = family
            return series
        }
    }
}

/// All series of a metric name.
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

/// A number that only increases, starting at 0.
public final class Counter: Sendable {
    private let count = Atomic<UInt64>(0)

    init() {}

    /// Increases the counter.
    public func add(_ amount: Int = 1) {
        precondition(amount >= 0, "a counter can only increase")
        count.wrappingAdd(UInt64(amount), ordering: .relaxed)
    }

    /// The current count.
    public var value: UInt64 { count.load(ordering: .relaxed) }
}

/// A number that can increase and decrease, starting at 0.
public final class Gauge: Sendable {
    private let bits = Atomic<UInt64>(0)

    init() {}

    /// Sets the number.
    public func set(_ value: Double) {
        bits.store(value.bitPattern, ordering: .relaxed)
    }

    /// Adds a number, which may be negative.
    public func add(_ amount: Double) {
        var old = bits.load(ordering: .relaxed)
        while true {
            let new = (Double(bitPattern: old) + amount).bitPattern
            let (exchanged, found) = bits.weakCompareExchange(expected: old, desired: new, ordering: .relaxed)
            if exchanged { return }
            old = found
        }
    }

    /// The current number.
    public var value: Double { Double(bitPattern: bits.load(ordering: .relaxed)) }
}

/// A histogram of observed values.
public final class Histogram: Sendable {
    /// Bucket bounds for durations between a millisecond and a minute, in seconds.
    public static let seconds: [Double] = [
        0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
    ]

    let bounds: [Double]
    /// A bucket for each bound, and one for larger values. They are not cumulative, unlike those of Prometheus.
    private let buckets: [Counter]
    private let total = Gauge()

    init(bounds: [Double]) {
        precondition(zip(bounds, bounds.dropFirst()).allSatisfy(<), "bounds must ascend")
        precondition(bounds.allSatisfy(\.isFinite), "infinity is added automatically")
        self.bounds = bounds
        buckets = (0...bounds.count).map { _ in Counter() }
    }

    /// Records a value.
    public func observe(_ value: Double) {
        buckets[bounds.firstIndex { value <= $0 } ?? bounds.count].add()
        total.add(value)
    }

    /// Records a duration, in seconds.
    public func observe(_ span: Duration) {
        observe(span / .seconds(1))
    }

    /// The sum of all values.
    public var sum: Double { total.value }

    /// The number of values up to each bound, and finally the number of all values.
    public var cumulativeCounts: [UInt64] {
        var count: UInt64 = 0
        return buckets.map { bucket in
            count += bucket.value
            return count
        }
    }
}

/// A metric whose value is read on demand.
final class Reading: Sendable {
    private let read: Lock<@Sendable () -> Double>

    init(_ read: @escaping @Sendable () -> Double) { self.read = Lock(read) }

    /// Replaces the closure that reads the value.
    func replace(_ read: @escaping @Sendable () -> Double) { self.read.withLock { $0 = read } }

    /// The current value.
    var value: Double { read.withLock { $0 }() }
}
