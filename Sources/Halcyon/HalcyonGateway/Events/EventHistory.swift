import Concurrency
import Formats
import Glibc
import HTTPServer
import HalcyonCluster
import HalcyonModel
import JSON

/// Settings of the history of events.
public struct HistoryOptions: Sendable {
    /// The age up to which figures are kept, and events if there is room for them.
    public var time = Duration.seconds(3600)
    /// The memory in bytes for the events that can be searched. The oldest ones are dropped first.
    public var bytes = 8 << 20

    /// Creates options with default values.
    public init() {}
}

/// The recent past of the cluster, as seen by one gateway: figures in slots of five seconds for an hour and of a minute
/// for longer windows, and the newest events of jobs for searches. A pure value of bounded size.
struct EventHistory: Sendable {
    /// The length of a fine and a coarse slot in seconds.
    static let (fineSeconds, coarseSeconds) = (5, 60)
    /// The longest period in seconds that fine slots cover.
    static let mostFineSeconds = 3600
    /// The maximum number of bars of a chart.
    static let mostBars = 60
    /// The number of parts of a trend.
    static let trendParts = 12
    /// The maximum number of distinct groups of failures in a slot. Further ones are counted without a host.
    static let mostGroups = 30
    /// The size of an event above which its JSON is not kept.
    static let mostEventBytes = 16 << 10

    let options: HistoryOptions
    /// The time in milliseconds since 1970 from which all events are known.
    private(set) var since: Int64
    private var fine: FigureRing
    /// The figures of windows above an hour; nil for shorter ones.
    private var coarse: FigureRing?
    private var entries: [HistoryEntry?] = []
    private var head = 0
    private var bytes = 0

    /// Creates an empty history.
    /// - Parameter since: the time from which all events will be added, in milliseconds since 1970.
    init(_ options: HistoryOptions, since: Int64) {
        self.options = options
        self.since = since
        let window = Int((options.time / .seconds(1)).rounded(.up))
        fine = FigureRing(slotSeconds: Self.fineSeconds, window: min(window, Self.mostFineSeconds))
        coarse =
            window > Self.mostFineSeconds ? FigureRing(slotSeconds: Self.coarseSeconds, window: window) : nil
    }

    /// The longest period of a summary in seconds.
    var mostSeconds: Int { coarse?.seconds ?? fine.seconds }

    /// The number of events that can be searched.
    var count: Int { entries.count - head }

    /// Forgets everything, before the same events are added again.
    mutating func removeAll() { self = EventHistory(options, since: since) }

    /// Adds an event of a job. Other events, and those of progress, are ignored.
    /// - Parameter now: the current time in milliseconds since 1970.
    mutating func add(_ json: [UInt8], at now: Int64) {
        guard let entry = HistoryEntry(json: json, now: now) else { return }
        if entry.kind.isTerminal {
            fine.add(entry, at: now)
            coarse?.add(entry, at: now)
        }
        entries.append(entry)
        bytes += entry.bytes
        let oldest = now - Int64(mostSeconds) * 1000
        while count > 1, let entry = entries[head], bytes > options.bytes || entry.time < oldest {
            bytes -= entry.bytes
            entries[head] = nil
            head += 1
        }
        if head >= 1024, head * 2 > entries.count {
            entries.removeFirst(head)
            head = 0
        }
    }

    /// Returns the figures of the last seconds.
    /// - Parameters:
    ///   - seconds: the length of the period; limited to ``mostSeconds``.
    ///   - now: the current time in milliseconds since 1970.
    func summary(of seconds: Int, at now: Int64) -> HistorySummary {
        let ring = seconds > fine.seconds ? coarse ?? fine : fine
        return ring.summary(of: seconds, at: now, since: since)
    }

    // MARK: Search

    /// Returns the newest event of each job that matches, the newest job first.
    func search(_ query: HistoryQuery, at now: Int64) -> (entries: [HistoryEntry], isMore: Bool) {
        var found: [HistoryEntry] = []
        var seen: Set<[UInt8]> = []
        let oldest = now - Int64(query.seconds ?? mostSeconds) * 1000
        for entry in entries[head...].reversed() {
            guard let entry, entry.time >= oldest, seen.insert(Array(entry.job.utf8)).inserted, query.matches(entry)
            else { continue }
            if found.count == query.limit { return (found, true) }
            found.append(entry)
        }
        return (found, false)
    }

    /// Returns the events of a job in the order of their arrival, at most 100.
    func events(of job: String) -> [HistoryEntry] {
        let id = Array(job.utf8)
        return Array(entries[head...].lazy.compactMap { $0 }.filter { Array($0.job.utf8) == id }.suffix(100))
    }
}

/// The figures of a window in slots of equal length. The slots form a ring: each has a fixed place, and is reset when a
/// later time needs it.
private struct FigureRing: Sendable {
    private struct Slot {
        /// The time divided by the length of a slot; -1 for a slot that was never used.
        var number: Int64 = -1
        var ended: [Event.Kind: Int] = [:]
        var origins: [CacheStatus: Int] = [:]
        var latencies = LatencyHistogram()
        var failures: [FailureGroup: FailureTally] = [:]
    }

    private let slotSeconds: Int
    private var slots: [Slot]

    /// - Parameter window: the length of the window in seconds.
    init(slotSeconds: Int, window: Int) {
        self.slotSeconds = slotSeconds
        slots = Array(repeating: Slot(), count: max(1, (window + slotSeconds - 1) / slotSeconds))
    }

    /// The length of the window in seconds.
    var seconds: Int { slots.count * slotSeconds }

    mutating func add(_ entry: HistoryEntry, at now: Int64) {
        let number = number(of: entry.time)
        guard number > self.number(of: now) - Int64(slots.count) else { return }
        let place = Int(number % Int64(slots.count))
        if slots[place].number != number { slots[place] = Slot(number: number) }
        slots[place].ended[entry.kind, default: 0] += 1
        if let origin = entry.origin.flatMap(CacheStatus.init) { slots[place].origins[origin, default: 0] += 1 }
        if entry.kind == .ready, let total = entry.total { slots[place].latencies.add(total) }
        guard let code = entry.code, entry.kind == .failed else { return }
        var group = FailureGroup(code: code, host: entry.host)
        let isFull = slots[place].failures.count >= EventHistory.mostGroups
        if isFull, slots[place].failures[group] == nil { group.host = "" }
        slots[place].failures[group, default: FailureTally()].add(1, last: entry.time, job: entry.job)
    }

    private func number(of milliseconds: Int64) -> Int64 { max(0, milliseconds) / Int64(slotSeconds * 1000) }

    func summary(of seconds: Int, at now: Int64, since: Int64) -> HistorySummary {
        let wanted = min(max(slotSeconds, seconds), self.seconds)
        let longest = slotSeconds * EventHistory.mostBars
        let slotsInBar = max(1, (wanted + longest - 1) / longest)
        let step = slotsInBar * slotSeconds
        let bars = (wanted + step - 1) / step
        let current = number(of: now)
        var summary = HistorySummary(
            since: max(since, now - Int64(wanted) * 1000), now: now, seconds: wanted, step: step,
            bars: Array(repeating: [:], count: bars))
        for slot in slots where slot.number >= 0 {
            let age = Int(current - slot.number)
            guard age >= 0, age < bars * slotsInBar else { continue }
            let bar = bars - 1 - age / slotsInBar
            summary.bars[bar].merge(slot.ended, uniquingKeysWith: +)
            summary.ended.merge(slot.ended, uniquingKeysWith: +)
            summary.origins.merge(slot.origins, uniquingKeysWith: +)
            summary.latencies.add(slot.latencies)
            let part = EventHistory.trendParts - 1 - age * EventHistory.trendParts / (bars * slotsInBar)
            for (group, tally) in slot.failures {
                summary.failures[group, default: FailureTally(parts: EventHistory.trendParts)].add(tally, part: part)
            }
        }
        return summary
    }
}

/// A group of failures with the same code and the same host of the source.
struct FailureGroup: Hashable, Sendable {
    let code: String
    /// The host, or the scheme of a source without one; empty if it is not known.
    var host: String
}

/// The number of failures of a group, in total and by part of a period.
struct FailureTally: Sendable {
    private(set) var count = 0
    /// The time of the last failure in milliseconds since 1970.
    private(set) var last: Int64 = 0
    /// The id of the job that failed last.
    private(set) var job = ""
    private(set) var trend: [Int]

    init(parts: Int = 0) { trend = Array(repeating: 0, count: parts) }

    mutating func add(_ number: Int, last: Int64, job: String) {
        count += number
        if last >= self.last { (self.last, self.job) = (last, job) }
    }

    mutating func add(_ other: FailureTally, part: Int) {
        add(other.count, last: other.last, job: other.job)
        trend[part] += other.count
    }
}

/// A histogram of durations in classes that grow by 5 %, from 0.1 ms to about 10 minutes. Quantiles have an error of up
/// to 2.5 %.
struct LatencyHistogram: Sendable {
    private static let least = 0.1
    private static let growth = 1.05
    private static let classes = 320
    private var counts: [Int: Int] = [:]

    /// - Parameter duration: in milliseconds.
    mutating func add(_ duration: Double) {
        guard duration.isFinite else { return }
        let exponent = log(max(duration, Self.least) / Self.least) / log(Self.growth)
        counts[min(Self.classes - 1, Int(exponent)), default: 0] += 1
    }

    mutating func add(_ other: LatencyHistogram) { counts.merge(other.counts, uniquingKeysWith: +) }

    /// Returns a quantile in milliseconds; nil if the histogram is empty.
    func quantile(_ part: Double) -> Double? {
        var rest = Int((Double(counts.values.reduce(0, +)) * part).rounded(.up))
        for (index, count) in counts.sorted(by: { $0.key < $1.key }) {
            rest -= count
            if rest <= 0 { return Self.least * pow(Self.growth, Double(index) + 0.5) }
        }
        return nil
    }
}

/// The figures of a period.
struct HistorySummary: JSONWritable, Sendable {
    /// The maximum number of groups of failures in JSON.
    private static let mostFailures = 50

    /// The time from which events are known, and the current time, in milliseconds since 1970.
    let (since, now): (Int64, Int64)
    let seconds: Int
    /// The length of a bar in seconds.
    let step: Int
    /// The jobs that ended by bar, the oldest first.
    var bars: [[Event.Kind: Int]]
    var ended: [Event.Kind: Int] = [:]
    var origins: [CacheStatus: Int] = [:]
    var latencies = LatencyHistogram()
    var failures: [FailureGroup: FailureTally] = [:]

    init(since: Int64, now: Int64, seconds: Int, step: Int, bars: [[Event.Kind: Int]]) {
        (self.since, self.now, self.seconds, self.step, self.bars) = (since, now, seconds, step, bars)
    }

    func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("since", Timestamp(milliseconds: since).rfc3339)
            writer.member("now", Timestamp(milliseconds: now).rfc3339)
            writer.member("seconds", Int64(seconds))
            writer.member("step", Int64(step))
            writer.name("ended")
            write(ended, to: &writer)
            writer.name("origins")
            writer.object { writer in
                for origin in CacheStatus.allCases { writer.member(origin.rawValue, Int64(origins[origin] ?? 0)) }
            }
            writer.name("latency")
            writer.object { writer in
                for (name, part) in [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)] {
                    writer.member(name, latencies.quantile(part).map { ($0 * 100).rounded() / 100 })
                }
            }
            writer.name("bars")
            writer.array { writer in for bar in bars { write(bar, to: &writer) } }
            writer.name("failures")
            writer.array { writer in for (group, tally) in sortedFailures { write(group, tally, to: &writer) } }
        }
    }

    private var sortedFailures: ArraySlice<(key: FailureGroup, value: FailureTally)> {
        failures.sorted { ($1.value.count, $0.key.code, $0.key.host) < ($0.value.count, $1.key.code, $1.key.host) }
            .prefix(Self.mostFailures)
    }

    private func write(_ ended: [Event.Kind: Int], to writer: inout JSONWriter) {
        writer.object { writer in
            for kind in Event.Kind.allCases where kind.isTerminal {
                writer.member(kind.rawValue, Int64(ended[kind] ?? 0))
            }
        }
    }

    private func write(_ group: FailureGroup, _ tally: FailureTally, to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("code", group.code)
            writer.member("host", group.host)
            writer.member("count", Int64(tally.count))
            writer.member("last", Timestamp(milliseconds: tally.last).rfc3339)
            writer.member("job", tally.job)
            writer.name("trend")
            writer.array { writer in for number in tally.trend { writer.value(Int64(number)) } }
        }
    }
}

/// An event of a job in the history.
struct HistoryEntry: JSONWritable, Sendable {
    let kind: Event.Kind
    /// The time of the event in milliseconds since 1970, at most that of its arrival.
    let time: Int64
    let job: String
    let batch: String?
    let source: String?
    let code: String?
    let message: String?
    let attempts: Int?
    let origin: String?
    /// The milliseconds from the worker's receipt of the job to its end.
    let total: Double?
    /// The record of the job, TOPIC-PARTITION-OFFSET.
    let record: String?
    /// The event; nil if it is too large.
    let json: [UInt8]?
    /// The text in lower case that searches look at.
    let text: [UInt8]

    /// The maximum length of a text in characters. Longer ones are cut.
    private static let longest = 1000

    /// The approximate memory use in bytes.
    var bytes: Int { 512 + 2 * text.count + (json?.count ?? 0) }

    /// Decodes an event; returns nil if it starts or ends no job.
    init?(json: [UInt8], now: Int64) {
        // A record that is not JSON is not an event.
        guard let root = try? JSON.parse(json, maximumSize: 64 << 20, maximumDepth: 64),
            let type = root.member("type")?.asString, type.hasPrefix(Event.typePrefix),
            let kind = Event.Kind(rawValue: String(type.dropFirst(Event.typePrefix.count))),
            kind.isTerminal || kind == .started, let data = root.member("data"),
            let job = data.member("job"), let id = job.member("id")?.asString
        else { return nil }
        func text(_ element: JSONElement?) -> String? {
            element?.asString.map { String($0.prefix(Self.longest)) }
        }
        self.kind = kind
        self.job = id
        let written = root.member("time")?.asString.flatMap { Timestamp(rfc3339: $0) }?.milliseconds
        time = min(now, written ?? now)
        batch = text(job.member("batch")?.member("id"))
        source = text(root.member("subject"))
        // A ready job with its fallback picture has the code of its failure.
        let failure = kind == .failed ? data : data.member("fallback")
        code = text(failure?.member("code"))
        message = text(failure?.member("message"))
        attempts = data.member("attempts")?.asInteger.map { Int(clamping: $0) }
        origin = text(data.member("origin"))
        total = data.member("timings")?.member("total")?.asDouble
        record = root.member("id")?.asString.flatMap { id in
            ["-ended", "-started"].first(where: id.hasSuffix).map { String(id.dropLast($0.count)) }
        }
        self.json = json.count <= EventHistory.mostEventBytes ? json : nil
        self.text = Array(
            [id, batch, source, code, message].compactMap(\.self).joined(separator: "\n").lowercased().utf8)
    }

    /// The host of the source, the scheme of a source without one, or an empty text.
    var host: String {
        guard let source else { return "" }
        guard let separator = source.firstRange(of: "://") else {
            return source.firstIndex(of: ":").map { String(source[...$0].prefix(100)) } ?? ""
        }
        let authority = source[separator.upperBound...].prefix { !"/?#".contains($0) }
        return String((authority.split(separator: "@").last ?? authority).prefix(100)).lowercased()
    }

    func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("job", job)
            writer.member("state", kind.rawValue)
            writer.member("time", Timestamp(milliseconds: time).rfc3339)
            writer.member("batch", batch)
            writer.member("source", source)
            writer.member("code", code)
            writer.member("message", message)
            writer.member("attempts", attempts.map(Int64.init))
            writer.member("origin", origin)
            writer.member("total", total)
        }
    }
}

/// A search for jobs in the history. Each member that is set must match.
struct HistoryQuery: Hashable, Sendable {
    /// A text that occurs in the id, batch, source, code or message, whatever its case.
    var text = ""
    var states: Set<String> = []
    var code: String?
    var host: String?
    var seconds: Int?
    var limit = 50

    /// The maximum number of jobs of a response.
    static let mostJobs = 500

    func matches(_ entry: HistoryEntry) -> Bool {
        if !states.isEmpty, !states.contains(entry.kind.rawValue) { return false }
        if let code, entry.code != code { return false }
        if let host, entry.host != host { return false }
        return text.isEmpty || entry.text.firstRange(of: Array(text.lowercased().utf8)) != nil
    }
}

/// The history of one gateway, shared by its feed and its requests.
final class HistoryStore: Sendable {
    private let history: Lock<EventHistory>

    init(_ options: EventOptions) {
        let since = Timestamp.now.milliseconds - Int64(options.memory / .milliseconds(1))
        history = Lock(EventHistory(options.history, since: since))
    }

    /// Adds the events of a batch of records.
    func add(_ events: [[UInt8]]) {
        let now = Timestamp.now.milliseconds
        history.withLock { history in for json in events { history.add(json, at: now) } }
    }

    func removeAll() { history.withLock { $0.removeAll() } }

    func withHistory<Value: Sendable>(_ body: (EventHistory) -> Value) -> Value { history.withLock { body($0) } }
}

/// Serves `/v1/history`: the figures of the last minutes, and a search among the jobs of that time.
struct HistoryRoutes: Sendable {
    let store: HistoryStore
    let messages: FailedJobReader

    /// The time limit for reading the message of a job.
    private static let patience = Duration.seconds(5)

    var all: [Route] {
        [
            Route("GET", "/v1/history", for: .read, answer: figures),
            Route("GET", "/v1/history/jobs", for: .read, answer: search),
            Route("GET", "/v1/history/jobs/{id}", for: .read, answer: look),
            Route("GET", "/v1/history/jobs/{id}/message", for: .admin, answer: message),
        ]
    }

    private func figures(_ call: RequestContext) throws -> HTTPServer.Response {
        let most = store.withHistory { $0.mostSeconds }
        let seconds = try call.number("seconds", in: EventHistory.fineSeconds...max(86_400, most)) ?? 300
        var writer = JSONWriter(capacity: 8192)
        writer.value(store.withHistory { $0.summary(of: seconds, at: Timestamp.now.milliseconds) })
        return HTTPServer.Response(status: 200, json: writer.bytes)
    }

    private func search(_ call: RequestContext) throws -> HTTPServer.Response {
        var query = HistoryQuery()
        for item in call.request.query {
            switch item.name {
            case "q": query.text = item.value
            case "state":
                for state in item.value.split(separator: ",") {
                    guard let kind = Event.Kind(rawValue: String(state)), kind.isTerminal || kind == .started else {
                        throw Problem(
                            .badRequest, "unknown state; expected started, ready, failed, cancelled or superseded")
                    }
                    query.states.insert(kind.rawValue)
                }
            case "code": query.code = item.value
            case "host": query.host = item.value
            case "seconds", "limit": continue
            default:
                throw Problem(.badRequest, "unknown parameter; expected q, state, code, host, seconds or limit")
            }
        }
        query.seconds = try call.number("seconds", in: 1...86_400)
        query.limit = try call.number("limit", in: 1...HistoryQuery.mostJobs) ?? query.limit
        let found = store.withHistory { [query] in $0.search(query, at: Timestamp.now.milliseconds) }
        var writer = JSONWriter(capacity: 8192)
        writer.object { writer in
            writer.name("jobs")
            writer.array { writer in for entry in found.entries { writer.value(entry) } }
            writer.member("more", found.isMore)
        }
        return HTTPServer.Response(status: 200, json: writer.bytes)
    }

    private func look(_ call: RequestContext) throws -> HTTPServer.Response {
        let entries = try entries(of: call["id"])
        var writer = JSONWriter(capacity: 8192)
        writer.object { writer in
            writer.member("id", call["id"])
            writer.member("record", entries.last?.record)
            writer.name("states")
            writer.array { writer in for entry in entries { writer.value(entry) } }
            writer.name("events")
            writer.array { writer in for entry in entries { entry.json.map { writer.raw($0.onOneLine) } } }
        }
        return HTTPServer.Response(status: 200, json: writer.bytes)
    }

    /// Returns the message of a job, read from its lane. It may contain credentials.
    private func message(_ call: RequestContext) async throws -> HTTPServer.Response {
        let id = call["id"]
        guard let record = try entries(of: id).last?.record else { throw Self.noMessage }
        let found = Lock<[UInt8]?>(nil)
        let late = Problem(.unavailable, "the message cannot be read at the moment; try again", retryAfter: 5)
        try await withDeadline(.now + Self.patience, throwing: late) { [messages] in
            let wanted = BatchFailure(job: id, index: nil, code: "", message: "", record: record)
            let json = try await messages.jobs(of: [wanted]).first?.job.json
            found.withLock { $0 = json }
        }
        guard let json = found.withLock({ $0 }) else { throw Self.noMessage }
        var writer = JSONWriter(capacity: json.count + 256)
        writer.object { writer in
            writer.member("record", record)
            writer.name("job")
            writer.raw(json.onOneLine)
        }
        return HTTPServer.Response(status: 200, json: writer.bytes)
    }

    private static let noMessage = Problem(.notFound, "the message of the job is no longer in its topic")

    private func entries(of id: String) throws(Problem) -> [HistoryEntry] {
        let entries = store.withHistory { $0.events(of: id) }
        if entries.isEmpty { throw Problem(.notFound, "this gateway has no recent event of this job") }
        return entries
    }
}
