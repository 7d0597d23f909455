import Formats
import HalcyonModel

/// One condition on dead letters: `code=timeout`.
public struct DeadLetterFilter: Sendable {
    /// The property that a condition compares.
    public enum Name: String, CaseIterable, Sendable {
        case code, reason, lane, tenant, job, source, webhook, since, until
    }

    /// The property that this condition compares.
    public let name: Name
    private let matches: @Sendable (DeadLetterSummary) -> Bool

    /// The names of all properties, for messages to users.
    public static var names: String { Name.allCases.map(\.rawValue).joined(separator: ", ") }

    /// Parses `NAME=VALUE`; nil if the text is not a valid condition.
    public init?(_ text: String) {
        let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, let name = Name(rawValue: String(parts[0])) else { return nil }
        self.init(name, String(parts[1]))
    }

    /// Creates a condition; nil if the value is invalid for the property.
    public init?(_ name: Name, _ value: String) {
        self.name = name
        switch name {
        case .code:
            guard value == "unknown" || JobErrorCode(rawValue: value) != nil else { return nil }
            matches = { $0.letter.code == value }
        case .reason:
            guard let reason = RetryExhaustedReason(rawValue: value) else { return nil }
            matches = { $0.letter.reason == reason }
        case .lane:
            guard let lane = Lane(rawValue: value) else { return nil }
            matches = { $0.lane == lane }
        case .tenant: matches = { $0.tenant == value }
        case .job: matches = { $0.job.map { Self.matches($0, glob: value) } ?? false }
        case .source: matches = { $0.source.map { Self.matches($0, glob: value) } ?? false }
        case .webhook: matches = { $0.webhook.map { Self.matches($0, glob: value) } ?? false }
        case .since, .until:
            guard let moment = Self.moment(value) else { return nil }
            matches = { name == .since ? $0.letter.record.timestamp >= moment : $0.letter.record.timestamp <= moment }
        }
    }

    /// True if a dead letter matches: for each property that occurs in the conditions, at least one condition must
    /// match.
    public static func all(_ filters: [DeadLetterFilter], match letter: DeadLetterSummary) -> Bool {
        Dictionary(grouping: filters, by: \.name).values.allSatisfy { $0.contains { $0.matches(letter) } }
    }

    /// Parses a time, or a duration before now, to milliseconds since 1970.
    private static func moment(_ text: String) -> Int64? {
        if let span = ValueKind.duration().value(of: text) {
            return Timestamp.now.milliseconds - Int64(span / .milliseconds(1))
        }
        return Timestamp(rfc3339: text)?.milliseconds
    }

    /// True if a text matches a pattern in which `*` stands for any text.
    static func matches(_ text: String, glob: String) -> Bool {
        // Compared by bytes, because equal Swift strings may be different ids and URLs.
        let (text, glob) = (Array(text.utf8), Array(glob.utf8))
        let parts = glob.split(separator: UInt8(ascii: "*"), omittingEmptySubsequences: false)
        guard parts.count > 1 else { return text == glob }
        guard text.starts(with: parts[0]) else { return false }
        var rest = text.dropFirst(parts[0].count)
        for part in parts[1..<(parts.count - 1)] where !part.isEmpty {
            guard let range = rest.firstRange(of: part) else { return false }
            rest = rest[range.upperBound...]
        }
        return rest.count >= parts[parts.count - 1].count
            && rest.suffix(parts[parts.count - 1].count) == parts[parts.count - 1]
    }
}

/// A query for dead letters.
public struct DeadLetterQuery: Sendable {
    /// The conditions. For each property that occurs in them, at least one condition must match.
    public var filters: [DeadLetterFilter]
    /// True to include dead letters that were replayed already.
    public var withReplayed: Bool
    /// The ids to restrict the query to; nil for all.
    public var letters: Set<DeadLetterID>?

    /// Creates a query.
    /// - Parameter letters: the ids to restrict the query to, whether or not they were replayed; nil for all.
    public init(_ filters: [DeadLetterFilter] = [], withReplayed: Bool = false, letters: Set<DeadLetterID>? = nil) {
        self.filters = filters
        self.withReplayed = withReplayed || letters != nil
        self.letters = letters
    }

    /// The range of offsets of each partition that may contain matching dead letters. Partitions without any are
    /// omitted.
    func ranges(in index: DeadLetterIndex, from positions: [Int32: Int64]) -> [Int32: Range<Int64>] {
        var ranges: [Int32: Range<Int64>] = [:]
        for (partition, end) in index.next {
            let from = positions[partition] ?? 0
            let bounds: (first: Int64, end: Int64)?
            if let letters {
                let offsets = letters.filter { $0.partition == partition && $0.offset >= from }.map(\.offset)
                bounds = offsets.min().flatMap { first in offsets.max().map { (first, $0 < end ? $0 + 1 : end) } }
            } else if withReplayed {
                bounds = (from, end)
            } else {
                bounds = index.firstOpen(of: partition, from: from).map { ($0, end) }
            }
            if let bounds, bounds.first < bounds.end { ranges[partition] = bounds.first..<bounds.end }
        }
        return ranges
    }

    func matches(_ letter: DeadLetterSummary) -> Bool {
        if let letters, !letters.contains(letter.letter.id) { return false }
        return (withReplayed || !letter.isReplayed) && DeadLetterFilter.all(filters, match: letter)
    }
}
