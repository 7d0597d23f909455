import Formats
import HalcyonCluster
import HalcyonCoding
import HalcyonModel
import JSON

/// The state of a cluster at one moment, as `halcyon top` shows it. Parts that are unknown because a server is
/// unavailable are nil.
struct ClusterSnapshot: Sendable {
    /// The time in milliseconds since 1970.
    var time: Int64
    /// The numbers of waiting jobs.
    var waiting: WaitingJobs?
    /// The jobs that leave each lane per second; empty until two samples were taken.
    var rates: [Lane: Double] = [:]
    /// The jobs that ended lately.
    var ended: EndedJobs.Summary?
    /// The workers.
    var workers: [WorkerInfo]?
    /// The batches that are not completed, the newest first.
    var batches: [Batch]?
    /// The lanes and tenants that are paused.
    var pauses: Pauses?

    /// True if no part is unknown.
    var isComplete: Bool {
        waiting != nil && ended != nil && workers != nil && batches != nil && pauses != nil
    }

    /// The number of jobs in flight of the busiest tenants. Each worker reports only its busiest ones.
    var tenants: [(tenant: String, jobs: Int)]? {
        workers.map { workers in
            WorkerInfo.busiest(workers.reduce(into: [:]) { $0.merge($1.tenants, uniquingKeysWith: +) })
        }
    }
}

extension ClusterSnapshot: JSONWritable {
    /// Writes an object. Parts that are unknown are omitted.
    func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("time", Timestamp(milliseconds: time).rfc3339)
            waiting?.writeMembers(to: &writer) { lane, writer in writer.member("rate", rates[lane].map(hundredths)) }
            if let ended {
                writer.name("ended")
                writer.object { writer in
                    writer.member("ready", hundredths(ended.ready))
                    writer.member("failed", hundredths(ended.failed))
                    writer.member("others", hundredths(ended.others))
                }
                writer.name("failures")
                writer.object { writer in
                    writer.member("seconds", ended.seconds)
                    writer.name("codes")
                    writer.object { writer in
                        for failures in ended.failures { writer.member(failures.code, failures.count) }
                    }
                }
            }
            if let tenants {
                writer.name("tenants")
                writer.array { writer in
                    for (tenant, jobs) in tenants {
                        writer.object { writer in
                            writer.member("tenant", tenant)
                            writer.member("jobs", jobs)
                        }
                    }
                }
            }
            writer.member("batches", batches)
            writer.member("workers", workers)
            writer.member("paused", pauses)
        }
    }

    private func hundredths(_ value: Double) -> Double { (value * 100).rounded() / 100 }
}

// MARK: Text

extension ClusterSnapshot {
    /// A line of the view.
    struct Line: Hashable, Sendable {
        var text: String
        /// True for the first line of a section.
        var isTitle = false
    }

    /// A table with a title line. The first column is aligned to the left, columns of numbers to the right.
    private struct Section {
        var columns: [String]
        /// The rows; nil if they are unknown.
        var rows: [[String]]?
        /// The text in place of no rows.
        var empty = "none"
        var numeric: Set<Int> = []
    }

    /// Formats the snapshot.
    /// - Parameters:
    ///   - columns: The maximum length of a line; nil for any length.
    ///   - rows: The maximum number of lines; nil for any number. The longest sections are shortened to fit.
    func lines(columns: Int? = nil, rows: Int? = nil) -> [Line] {
        let sections = [lanesSection, tenantsSection, batchesSection, workersSection, failuresSection]
        let counts = sections.map { max(1, $0.rows?.count ?? 1) }
        // Each section has an empty line before it and a title.
        let shown = rows.map { Self.shortened(counts, to: $0 - 1 - 2 * sections.count) } ?? counts
        var lines = [Line(text: summary)]
        for (section, limit) in zip(sections, shown) {
            lines.append(Line(text: ""))
            lines += Self.format(section, limit: limit)
        }
        return lines.prefix(rows ?? .max).map { line in
            Line(text: columns.map { Self.cut(line.text, to: $0) } ?? line.text, isTitle: line.isTitle)
        }
    }

    /// Shortens the longest of several lists until all of them have at most `room` elements. Each keeps one.
    static func shortened(_ counts: [Int], to room: Int) -> [Int] {
        var counts = counts
        var excess = counts.reduce(0, +) - room
        while excess > 0, let longest = counts.indices.max(by: { counts[$0] < counts[$1] }), counts[longest] > 1 {
            counts[longest] -= 1
            excess -= 1
        }
        return counts
    }

    private var summary: String {
        let clock = Timestamp(milliseconds: time / 1000 * 1000).rfc3339.split(separator: ".")[0]
        guard let ended else { return "\(clock)  ended jobs: unavailable" }
        func text(_ rate: Double) -> String { decimal(rate, places: 1) }
        return "\(clock)  per second: \(text(ended.ready)) ready, \(text(ended.failed)) failed, "
            + "\(text(ended.others)) cancelled or superseded"
    }

    private var lanesSection: Section {
        let rows = waiting.map { waiting in
            let lanes: [[String]] = Lane.allCases.map { lane in
                [
                    lane.rawValue, "\(waiting.lanes[lane] ?? 0)", rates[lane].map { decimal($0, places: 1) } ?? "–",
                    pauses.map { pauseText(.lane(lane), $0) } ?? "pauses unavailable",
                ]
            }
            let others = [
                ["retry topics", "\(waiting.retries)", "", ""], ["delay topics", "\(waiting.scheduled)", "", ""],
                ["overflow topic", "\(waiting.overflow)", "", ""],
            ]
            return lanes + others
        }
        return Section(columns: ["LANES", "WAITING", "JOBS/S", ""], rows: rows, numeric: [1, 2])
    }

    private var tenantsSection: Section {
        var busy = tenants
        // Paused tenants have no jobs in flight after a while.
        let known = Set(busy?.map(\.tenant) ?? [])
        if busy != nil, let pauses {
            busy? += pauses.tenants.subtracting(known).sorted().map { ($0, 0) }
        }
        let rows = busy?.map { tenant, jobs in
            [tenant, "\(jobs)", pauses.map { pauseText(.tenant(tenant), $0) } ?? ""]
        }
        return Section(columns: ["TENANTS", "IN FLIGHT", ""], rows: rows, numeric: [1])
    }

    private var batchesSection: Section {
        let rows = batches?.map { batch in
            [
                batch.id, batch.state.rawValue, Self.progress(of: batch),
                "\(batch.counts.ended)/\(batch.total.map(String.init) ?? "?")", "\(batch.counts.failed)",
                Self.age(milliseconds: time - batch.created),
            ]
        }
        return Section(
            columns: ["BATCHES", "STATE", "PROGRESS", "ENDED", "FAILED", "AGE"], rows: rows, empty: "none running",
            numeric: [3, 4, 5])
    }

    private var workersSection: Section {
        let rows = workers?.map { worker in
            [
                worker.id, worker.host, "\(worker.threads)", "\(worker.jobs.values.reduce(0, +))",
                Self.age(milliseconds: time - worker.since),
            ]
        }
        return Section(
            columns: ["WORKERS", "HOST", "THREADS", "IN FLIGHT", "UP"], rows: rows, empty: "none running",
            numeric: [2, 3, 4])
    }

    private var failuresSection: Section {
        let window = ended.map { Self.age(milliseconds: Int64($0.seconds) * 1000) } ?? ""
        return Section(
            columns: ["FAILURES", window.isEmpty ? "" : "LAST \(window)"],
            rows: ended?.failures.map { [$0.code, "\($0.count)"] }, numeric: [1])
    }

    private func pauseText(_ target: PauseTarget, _ pauses: Pauses) -> String {
        guard let since = pauses.paused.first(where: { $0.target == target })?.since else { return "" }
        return "paused for \(Self.age(milliseconds: time - since / 1000))"
    }

    /// A bar such as `[#####     ]  50%`; empty while the number of jobs is unknown.
    private static func progress(of batch: Batch) -> String {
        guard let total = batch.total, total > 0 else { return "" }
        let ended = min(batch.counts.ended, total)
        let (width, percent) = (10, "\(100 * ended / total)%")
        let full = width * ended / total
        return "[\(String(repeating: "#", count: full))\(String(repeating: " ", count: width - full))] "
            + String(repeating: " ", count: 4 - percent.count) + percent
    }

    /// A time span in the largest unit of which there are two, such as `90 s` or `3 h`.
    static func age(milliseconds: Int64) -> String {
        let seconds = max(0, milliseconds / 1000)
        for (unit, length) in [("d", Int64(86_400)), ("h", 3600), ("min", 60)] where seconds >= 2 * length {
            return "\(seconds / length) \(unit)"
        }
        return "\(seconds) s"
    }

    private static func format(_ section: Section, limit: Int) -> [Line] {
        guard let rows = section.rows, !rows.isEmpty else {
            let text = section.rows == nil ? "unavailable" : section.empty
            return [Line(text: section.columns[0], isTitle: true), Line(text: "  \(text)")]
        }
        let isCut = rows.count > limit
        let shown = rows.prefix(isCut ? limit - 1 : limit).map { row in
            row.enumerated().map { $0 == 0 ? "  " + visible($1) : visible($1) }
        }
        let table = [section.columns] + shown
        let widths = section.columns.indices.map { column in table.map { $0[column].count }.max() ?? 0 }
        var lines = table.enumerated().map { index, row in
            let cells = row.enumerated().map { column, cell in
                let padding = String(repeating: " ", count: widths[column] - cell.count)
                return section.numeric.contains(column) ? padding + cell : cell + padding
            }
            let text = cells.joined(separator: "  ")
            return Line(text: String(text.reversed().drop { $0 == " " }.reversed()), isTitle: index == 0)
        }
        if isCut { lines.append(Line(text: "  … \(rows.count - shown.count) more")) }
        return lines
    }

    /// Replaces control characters, which could change the state of the terminal.
    private static func visible(_ text: String) -> String {
        String(
            String.UnicodeScalarView(text.unicodeScalars.map { $0.properties.generalCategory == .control ? "?" : $0 }))
    }

    private static func cut(_ text: String, to columns: Int) -> String {
        text.count <= columns ? text : String(text.prefix(max(0, columns - 1))) + "…"
    }
}

// MARK: Rates

/// The jobs that ended within the last minutes, by second. A pure value.
struct EndedJobs: Sendable {
    /// The jobs that ended lately.
    struct Summary: Hashable, Sendable {
        /// A failure code and the number of jobs that failed with it.
        struct Failures: Hashable, Sendable {
            var code: String
            var count: Int
        }

        /// The jobs per second that became ready within the last ten seconds.
        var ready = 0.0
        /// The jobs per second that failed within the last ten seconds.
        var failed = 0.0
        /// The jobs per second that were cancelled or superseded within the last ten seconds.
        var others = 0.0
        /// The failures within the last ``seconds``, the most frequent first.
        var failures: [Failures] = []
        /// The length of the window of the failures, up to ``EndedJobs/window``.
        var seconds = EndedJobs.window
    }

    private struct Second {
        var (ready, failed, others) = (0, 0, 0)
        var codes: [String: Int] = [:]
    }

    /// The seconds for which failures are remembered.
    static let window = 300
    /// The number of full seconds over which rates are averaged.
    static let averaged = 10

    private var seconds: [Int64: Second] = [:]
    /// The time since which all ends are known, in milliseconds since 1970; nil for that of the first one.
    private var since: Int64?

    /// - Parameter since: the time since which all ends are known; nil for that of the first one that is added.
    init(since: Int64?) { self.since = since }

    /// Counts the end of a job.
    /// - Parameters:
    ///   - time: the time of its event in milliseconds since 1970.
    ///   - now: the current time. Events with a later time count as of now.
    mutating func add(_ ending: DecodedEvent.Ending, at time: Int64, now: Int64) {
        since = since ?? time
        let second = min(time, now) / 1000
        guard second > now / 1000 - Int64(Self.window) else { return }
        if seconds[second] == nil {
            let first = now / 1000 - Int64(Self.window)
            seconds = seconds.filter { $0.key > first }
        }
        switch ending {
        case .ready: seconds[second, default: Second()].ready += 1
        case .failed(let code, _):
            seconds[second, default: Second()].failed += 1
            seconds[second]?.codes[code, default: 0] += 1
        case .cancelled, .superseded: seconds[second, default: Second()].others += 1
        }
    }

    /// Returns the rates and failures.
    /// - Parameter now: the current time in milliseconds since 1970.
    func summary(now: Int64) -> Summary {
        let now = now / 1000
        var summary = Summary()
        var codes: [String: Int] = [:]
        for (second, counts) in seconds where second > now - Int64(Self.window) {
            codes.merge(counts.codes, uniquingKeysWith: +)
            // The current second is not over.
            guard second >= now - Int64(Self.averaged), second < now else { continue }
            summary.ready += Double(counts.ready) / Double(Self.averaged)
            summary.failed += Double(counts.failed) / Double(Self.averaged)
            summary.others += Double(counts.others) / Double(Self.averaged)
        }
        summary.failures = codes.map { Summary.Failures(code: $0.key, count: $0.value) }
            .sorted { $0.count == $1.count ? $0.code < $1.code : $0.count > $1.count }
        if let since { summary.seconds = min(Self.window, max(1, Int(now - since / 1000))) }
        return summary
    }
}

/// The rates at which jobs leave the lanes, from the growth of the committed offsets. A pure value.
struct LaneRates: Sendable {
    private var samples: [(moment: ContinuousClock.Instant, positions: [Lane: Int64])] = []

    /// Adds a sample.
    /// - Parameter positions: the sum of the committed offsets of each lane.
    /// - Returns: the jobs per second since the oldest sample of the last ten seconds; empty after the first sample.
    mutating func add(_ positions: [Lane: Int64], at moment: ContinuousClock.Instant) -> [Lane: Double] {
        samples.removeAll { $0.moment < moment - .seconds(EndedJobs.averaged) }
        defer { samples.append((moment, positions)) }
        guard let oldest = samples.first, oldest.moment < moment else { return [:] }
        let seconds = oldest.moment.duration(to: moment) / .seconds(1)
        return Dictionary(
            uniqueKeysWithValues: positions.map { lane, position in
                (lane, max(0, Double(position - (oldest.positions[lane] ?? position))) / seconds)
            })
    }
}
