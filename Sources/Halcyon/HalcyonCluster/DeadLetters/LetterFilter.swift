import Formats
import HalcyonModel

/// One condition on dead letters: `code=timeout`.
public struct LetterFilter: Sendable {
    /// What is compared.
    public enum Name: String, CaseIterable, Sendable {
        case code, reason, lane, tenant, job, source, webhook, since, until
    }

    /// What is compared.
    public let name: Name
    private let matches: @Sendable (LetterView) -> Bool

    /// All of them, for people.
    public static var names: String { Name.allCases.map(\.rawValue).joined(separator: ", ") }

    /// `NAME=VALUE`; nil for what is no condition.
    public init?(_ text: String) {
        let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, let name = Name(rawValue: String(parts[0])) else { return nil }
        self.init(name, String(parts[1]))
    }

    /// Nil for a value that its name cannot have.
    public init?(_ name: Name, _ value: String) {
        self.name = name
        switch name {
        case .code:
            guard value == "unknown" || FailureCode(rawValue: value) != nil else { return nil }
            matches = { $0.letter.code == value }
        case .reason:
            guard let reason = GivingUp(rawValue: value) else { return nil }
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

    /// Whether a letter is wanted: of each name that stands among the conditions one must hold.
    public static func all(_ filters: [LetterFilter], match letter: LetterView) -> Bool {
        Dictionary(grouping: filters, by: \.name).values.allSatisfy { $0.contains { $0.matches(letter) } }
    }

    /// Milliseconds since 1970.
    private static func moment(_ text: String) -> Int64? {
        if let span = ValueKind.duration().value(of: text) {
            return Timestamp.now.milliseconds - Int64(span / .milliseconds(1))
        }
        return Timestamp(rfc3339: text)?.milliseconds
    }

    /// Whether a text is like a pattern in which `*` stands for anything.
    static func matches(_ text: String, glob: String) -> Bool {
        // By bytes: equal strings of Swift may be different ids and URLs.
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

/// Which letters are wanted.
public struct LetterQuery: Sendable {
    /// What they must have: of each name that stands among the conditions one must hold.
    public var filters: [LetterFilter]
    /// Those too that were replayed already.
    public var withReplayed: Bool
    /// These alone; nil for all.
    public var letters: Set<LetterID>?

    /// - Parameter letters: these alone, whether they were replayed or not.
    public init(_ filters: [LetterFilter] = [], withReplayed: Bool = false, letters: Set<LetterID>? = nil) {
        self.filters = filters
        self.withReplayed = withReplayed || letters != nil
        self.letters = letters
    }

    /// The first and one past the last offset of each partition between which there may be such letters; partitions without any are left out.
    func ranges(in book: DeadBook, from positions: [Int32: Int64]) -> [Int32: Range<Int64>] {
        var ranges: [Int32: Range<Int64>] = [:]
        for (partition, end) in book.next {
            let from = positions[partition] ?? 0
            let bounds: (first: Int64, end: Int64)?
            if let letters {
                let offsets = letters.filter { $0.partition == partition && $0.offset >= from }.map(\.offset)
                bounds = offsets.min().flatMap { first in offsets.max().map { (first, $0 < end ? $0 + 1 : end) } }
            } else if withReplayed {
                bounds = (from, end)
            } else {
                bounds = book.firstOpen(of: partition, from: from).map { ($0, end) }
            }
            if let bounds, bounds.first < bounds.end { ranges[partition] = bounds.first..<bounds.end }
        }
        return ranges
    }

    func matches(_ letter: LetterView) -> Bool {
        if let letters, !letters.contains(letter.letter.id) { return false }
        return (withReplayed || !letter.isReplayed) && LetterFilter.all(filters, match: letter)
    }
}
