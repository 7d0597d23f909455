import Concurrency
import JSON
import Subprocess

/// A worker with the shipped defaults, and the partitions of the normal lane that it says are its own.
final class GapWorker: Sendable {
    let process: ChildProcess
    private let assigned: Lock<Set<Int32>>

    /// - Parameters:
    ///   - environment: addresses of the servers; everything else is left to the defaults.
    ///   - topic: the topic of the normal lane.
    init(executable: String, environment: [String: String], topic: String) async throws {
        let assigned = Lock<Set<Int32>>([])
        var options = ChildProcess.Options()
        options.environment = environment
        options.errors = .lines { line in
            guard let record = try? JSON.parse(Array(line.utf8), maximumSize: 1 << 16, maximumDepth: 8),
                let message = try? record.member("message")?.string(),
                let change = Self.changes[message]
            else { return }
            let partitions = Self.partitions(of: record, topic)
            assigned.withLock { change(&$0, partitions) }
        }
        self.assigned = assigned
        process = try await ChildProcess.start(executable, ["worker"], options: options)
    }

    /// Empty until the group has given it some.
    var partitions: Set<Int32> { assigned.withLock { $0 } }

    private static let changes: [String: @Sendable (inout Set<Int32>, Set<Int32>) -> Void] = [
        "partitions assigned": { $0.formUnion($1) },
        "partitions revoked": { $0.subtract($1) },
    ]

    /// The numbers in `["halcyon.jobs[0]", …]`.
    private static func partitions(of record: JSONElement, _ topic: String) -> Set<Int32> {
        var found: Set<Int32> = []
        try? record.member("partitions")?.forEachElement { element throws(JSONError) in
            let name = try element.string()
            guard name.hasPrefix("\(topic)["), let number = Int32(name.dropFirst(topic.count + 1).dropLast()) else {
                return
            }
            found.insert(number)
        }
        return found
    }
}
