import HalcyonModel
import HalcyonResults

/// Checks the content of the result store after a run: the results of jobs that require the store must be there, and
/// each result must be the image that events have described.
public struct StoreAudit: Sendable {
    /// The number of results that events have described and the audit has looked for.
    public let sought: Int
    /// The number of those in the store.
    public let found: Int
    /// The results that a job required, and that are missing.
    public let missing: [(job: SentJob, key: String)]
    /// The results that are another image than the event of a job has described.
    public let wrong: [(job: SentJob, key: String)]

    /// The maximum number of results that no job required to look for.
    private static let mostOthers = 2000
    /// The number of simultaneous reads.
    private static let width = 8

    /// Reads the store.
    /// - Parameters:
    ///   - sent: The jobs of the run.
    ///   - ends: Their terminal events.
    ///   - find: Reads a result from the store.
    public init(
        sent: [SentJob], ends: [TerminalEvent],
        _ find: @escaping @Sendable (ResultKey) async -> StoredResult?
    ) async {
        struct Expectation {
            let job: SentJob
            let key: ResultKey
            let sha256: String
            var isRequired: Bool
        }
        let jobs = Dictionary(sent.map { ($0.place, $0) }) { first, _ in first }
        var expected: [String: Expectation] = [:]
        for end in ends where end.end == "ready" {
            guard let job = jobs[end.place] else { continue }
            for output in end.outputs {
                if expected[output.key]?.isRequired ?? false || !job.requiresStore && expected[output.key] != nil {
                    continue
                }
                guard let key = ResultKey(output.key) else { continue }
                expected[output.key] = Expectation(
                    job: job, key: key, sha256: output.sha256, isRequired: job.requiresStore)
            }
        }
        let others = expected.values.filter { !$0.isRequired }.sorted { $0.key.description < $1.key.description }
        let wanted = expected.values.filter(\.isRequired) + others.prefix(Self.mostOthers)
        var (missing, wrong): ([(job: SentJob, key: String)], [(job: SentJob, key: String)]) = ([], [])
        var found = 0
        await withTaskGroup(of: (Expectation, StoredResult?).self) { group in
            var rest = wanted[...]
            for _ in 0..<Self.width {
                guard let next = rest.popFirst() else { break }
                group.addTask { (next, await find(next.key)) }
            }
            while let (expectation, result) = await group.next() {
                if let next = rest.popFirst() { group.addTask { (next, await find(next.key)) } }
                guard let result else {
                    if expectation.isRequired { missing.append((expectation.job, expectation.key.description)) }
                    continue
                }
                found += 1
                if result.metadata.sha256 != expectation.sha256 {
                    wrong.append((expectation.job, expectation.key.description))
                }
            }
        }
        sought = wanted.count
        self.found = found
        self.missing = missing
        self.wrong = wrong
    }

    /// The violated guarantees, one sentence each.
    public var broken: [String] {
        var list: [String] = []
        if !missing.isEmpty { list.append("\(missing.count) required results are missing in the result store") }
        if !wrong.isEmpty { list.append("\(wrong.count) results in the result store are wrong images") }
        return list
    }
}
