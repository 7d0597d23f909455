import CivilTime
import Glibc
import HalcyonCluster
import HalcyonModel
import Redis
import Threads

/// Has a worker stand on the roll for as long as it lives, with the jobs that it has under way. While Redis is away it stands nowhere, and goes on.
final class RollCall: Sendable {
    private let roll: WorkerRoll
    private let options: RollOptions
    /// The word for each topic that jobs come from.
    private let words: [String: String]
    private let entry: Lock<WorkerEntry>
    private let task = Lock<Task<Void, Never>?>(nil)

    /// - Parameter redis: stays its maker's.
    init(_ redis: RedisClient, _ options: RollOptions, topics: Topics, threads: Int) {
        roll = WorkerRoll(redis)
        self.options = options
        words = Dictionary(uniqueKeysWithValues: Lane.allCases.map { (topics.jobs($0), $0.rawValue) })
        let (host, pid) = (Self.host, getpid())
        let number = String(UInt32.random(in: 0 ... .max), radix: 16)
        entry = Lock(
            WorkerEntry(
                id: "\(host)-\(pid)-\(number)", host: host, pid: pid, version: options.version,
                since: Timestamp.now.milliseconds, threads: threads))
    }

    /// Signs it, again and again.
    func start() {
        let signing = Task {
            while !Task.isCancelled {
                try? await roll.sign(entry.withLock { $0 }, for: options.interval * 4)
                try? await Task.sleep(for: options.interval)
            }
        }
        task.withLock { $0 = signing }
    }

    /// A job was taken from a topic.
    func took(from topic: String) { count(topic, 1) }

    /// It has ended, or was handed back.
    func ended(from topic: String) { count(topic, -1) }

    /// Signs it no more, and is off it at once where Redis is there.
    func leave() async {
        guard let signing = task.withLock({ $0.take() }) else { return }
        signing.cancel()
        await atMost(.seconds(1)) { [roll, id = entry.withLock { $0.id }] in
            await signing.value
            try? await roll.leave(id)
        }
    }

    private func count(_ topic: String, _ change: Int) {
        let word = words[topic] ?? "retry"
        entry.withLock { $0.jobs[word, default: 0] += change }
    }

    private static var host: String {
        var name = [CChar](repeating: 0, count: 256)
        guard gethostname(&name, name.count - 1) == 0 else { return "unknown" }
        return String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
