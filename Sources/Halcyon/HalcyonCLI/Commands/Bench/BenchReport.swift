import Glibc
import HalcyonModel
import JSON

/// The report on a load.
struct BenchReport {
    let figures: BenchFigures
    /// The time from the first job to the last outcome.
    let elapsed: Duration

    private static let percentiles = [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)]

    private var perSecond: Double { Double(figures.ended) / max(elapsed / .seconds(1), 0.001) }

    // MARK: Text

    var text: String {
        var lines = [
            "jobs        \(figures.ended) in \(spanText(milliseconds: elapsed.milliseconds)), "
                + "\(decimal(perSecond, places: 1))/s: \(figures.ready) ready, \(figures.failed) failed"
                + (figures.unfinished > 0 ? ", \(figures.unfinished) unfinished" : ""),
            "latency     \(Self.text(figures.latency))",
        ]
        let ratios: [(CacheStatus, String)] = [
            (.memory, "hits"), (.store, "from the result store"), (.coalesced, "coalesced"),
            (.sourceCache, "from cached sources"), (.network, "fetched"),
        ]
        let parts = ratios.compactMap { origin, word in
            figures.part(origin).map { "\(decimal($0 * 100, places: 1)) % \(word)" }
        }
        if !parts.isEmpty { lines.append("results     \(parts.joined(separator: ", "))") }
        for stage in Timings.Stage.allCases {
            guard let spread = figures.stages[stage.name] else { continue }
            lines.append("  \(stage.name)".padded(to: 12) + "\(Self.text(spread))  (\(spread.count) jobs)")
        }
        let failures = figures.failures.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
        if !failures.isEmpty {
            lines.append("failures    \(failures.map { "\($0.value) \($0.key)" }.joined(separator: ", "))")
        }
        return lines.joined(separator: "\n")
    }

    private static func text(_ spread: Spread) -> String {
        let parts = percentiles.map { name, part in
            "\(name) \(spread.percentile(part).map { spanText(milliseconds: $0) } ?? "-")"
        }
        return (parts + ["max \(spanText(milliseconds: spread.longest))"]).joined(separator: "  ")
    }

    // MARK: JSON

    var json: [UInt8] {
        JSONWriter.object { writer in
            writer.member("seconds", elapsed / .seconds(1))
            writer.member("submitted", figures.submitted)
            writer.member("ready", figures.ready)
            writer.member("failed", figures.failed)
            writer.member("unfinished", figures.unfinished)
            writer.member("perSecond", perSecond)
            writer.member("hitRatio", figures.part(.memory))
            writer.member("coalescingRatio", figures.part(.coalesced))
            writer.name("origins")
            writer.object { writer in
                for (name, count) in figures.origins.sorted(by: { $0.key < $1.key }) { writer.member(name, count) }
            }
            writer.name("failures")
            writer.object { writer in
                for (name, count) in figures.failures.sorted(by: { $0.key < $1.key }) { writer.member(name, count) }
            }
            writer.name("latency")
            Self.write(figures.latency, to: &writer)
            writer.name("stages")
            writer.object { writer in
                for stage in Timings.Stage.allCases {
                    guard let spread = figures.stages[stage.name] else { continue }
                    writer.name(stage.name)
                    Self.write(spread, to: &writer)
                }
            }
        }
    }

    /// Writes the count, percentiles and maximum in milliseconds.
    private static func write(_ spread: Spread, to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("count", spread.count)
            for (name, part) in percentiles { writer.member(name, spread.percentile(part)) }
            writer.member("max", spread.count == 0 ? nil : spread.longest)
        }
    }
}

/// The figures of a load so far.
struct BenchFigures: Sendable {
    /// Jobs that the brokers have acknowledged.
    private(set) var submitted = 0
    private(set) var ready = 0
    /// Failures by code, including `cancelled`, `superseded` and `not_submitted`.
    private(set) var failures: [String: Int] = [:]
    /// Ready jobs by the origin of their results.
    private(set) var origins: [String: Int] = [:]
    /// The time from before a job was sent until its event was received.
    private(set) var latency = Spread()
    /// The stage durations of ready jobs, from their events.
    private(set) var stages: [String: Spread] = [:]
    /// The time at which the last job ended.
    private(set) var last: ContinuousClock.Instant?

    var failed: Int { failures.values.reduce(0, +) }
    var ended: Int { ready + failed }
    /// Submitted jobs that have not ended.
    var unfinished: Int { submitted + (failures[Self.notSubmitted] ?? 0) - ended }

    static let notSubmitted = "not_submitted"

    mutating func submit() { submitted += 1 }

    mutating func missSubmission() { failures[Self.notSubmitted, default: 0] += 1 }

    /// Records the end of a job.
    /// - Parameter start: the time at which the job was sent.
    mutating func end(_ ending: BenchEnding, from start: ContinuousClock.Instant, at now: ContinuousClock.Instant) {
        last = now
        latency.add(start.duration(to: now).milliseconds)
        switch ending {
        case .ready(let origin, let timings):
            ready += 1
            origins[origin, default: 0] += 1
            for (stage, milliseconds) in timings { stages[stage, default: Spread()].add(milliseconds) }
        case .failed(let reason): failures[reason, default: 0] += 1
        }
    }

    /// The fraction of ready jobs whose results came from `origin`, or nil if no job is ready.
    func part(_ origin: CacheStatus) -> Double? {
        ready == 0 ? nil : Double(origins[origin.rawValue] ?? 0) / Double(ready)
    }
}

/// The outcome of a job of a load, from its event.
enum BenchEnding: Sendable {
    /// The job is ready, with the origin of its results and milliseconds by stage.
    case ready(origin: String, timings: [(stage: String, milliseconds: Double)])
    /// The job failed, was cancelled or was superseded, with the failure code or the event kind.
    case failed(String)

    /// Parses an event. Returns nil if it is not terminal.
    init?(json: [UInt8]) {
        // A record that is not JSON is not an event.
        guard let root = try? JSON.parse(json, maximumSize: 64 << 20, maximumDepth: 64),
            let type = root.member("type")?.asString, type.hasPrefix("halcyon.image."),
            let kind = Event.Kind(rawValue: String(type.dropFirst("halcyon.image.".count))), kind.isTerminal,
            let data = root.member("data")
        else { return nil }
        func text(_ name: String) -> String? { data.member(name)?.asString }
        guard kind == .ready else {
            self = .failed(text("code") ?? kind.rawValue)
            return
        }
        var timings: [(String, Double)] = []
        // Timings after the first value that is not a number are ignored.
        try? data.member("timings")?.forEachMember { name, value throws(JSONError) in
            timings.append(("\(name)", try value.double()))
        }
        self = .ready(origin: text("origin") ?? "", timings: timings)
    }
}

/// A histogram of durations in constant memory. Its percentiles are at most two percent too high.
struct Spread: Sendable {
    /// The ratio between the upper bounds of adjacent buckets.
    private static let growth = 1.02
    /// The upper bound of the first bucket in milliseconds.
    private static let shortest = 0.01
    /// The number of buckets. They cover durations of up to about 17 days.
    private static let buckets = 1300

    private var counts = [Int](repeating: 0, count: buckets)
    private(set) var count = 0
    private(set) var longest = 0.0

    mutating func add(_ milliseconds: Double) {
        let bucket = log(max(milliseconds, Self.shortest) / Self.shortest) / log(Self.growth)
        counts[min(Int(bucket.rounded(.up)), Self.buckets - 1)] += 1
        count += 1
        longest = max(longest, milliseconds)
    }

    /// The duration in milliseconds that the given fraction of values does not exceed, or nil without values.
    func percentile(_ part: Double) -> Double? {
        guard count > 0 else { return nil }
        let wanted = max(1, Int((part * Double(count)).rounded(.up)))
        var seen = 0
        for (index, number) in counts.enumerated() {
            seen += number
            if seen >= wanted { return min(longest, Self.shortest * pow(Self.growth, Double(index))) }
        }
        return longest
    }
}
