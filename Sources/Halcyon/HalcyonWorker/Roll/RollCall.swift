import Formats
import Glibc
import HalcyonCluster
import HalcyonModel
import Redis
import Telemetry
import Threads

/// Has a worker stand on the roll for as long as it lives, with the jobs that it has under way. While Redis is away it stands nowhere, and goes on.
final class RollCall: Sendable {
    private let roll: WorkerRoll
    private let options: RollOptions
    /// For how long the group takes a silent member for alive.
    private let session: Duration
    /// The word for each topic that jobs come from.
    private let words: [String: String]
    private let entry: Lock<WorkerEntry>
    private let task = Lock<Task<Void, Never>?>(nil)
    private let errors: ToleratedErrors

    /// - Parameters:
    ///   - redis: stays its maker's.
    ///   - session: for how long the worker's group takes a silent member for alive.
    ///   - errors: those of signing.
    init(
        _ redis: RedisClient, _ options: RollOptions, session: Duration, topics: Topics, threads: Int,
        errors: ToleratedErrors
    ) {
        roll = WorkerRoll(redis)
        self.errors = errors
        self.options = options
        self.session = session
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
                await errors.tolerating { try await roll.sign(entry.withLock { $0 }, for: life) }
                await Task.sleepUnlessCancelled(for: options.interval)
            }
        }
        task.withLock { $0 = signing }
    }

    /// Waits, before a worker joins its group, until all others have shown that they live, or the group has given up those that have not.
    ///
    /// A group of Kafka waits for all of its members before it shares the partitions anew, and with it all workers that live. A worker that has
    /// died is waited for too, until its session is over: then better the newcomer waits, alone. Where Redis is away nobody does.
    func waitUntilSessionsExpire(log: Log) async {
        await atMost(giveUp) { [self] in
            // Where Redis is away nobody can be waited for.
            guard var unseen = try? await roll.expiries() else { return }
            let start = ContinuousClock.now
            var isSaid = false
            while !unseen.isEmpty {
                await Task.sleepUnlessCancelled(for: .milliseconds(100))
                // Likewise.
                guard let expiries = try? await roll.expiries() else { return }
                // Who lives signs anew; who is dead goes off the roll.
                unseen = unseen.filter { id, expiry in expiries[id] == expiry }
                if !isSaid, !unseen.isEmpty, start.duration(to: .now) > options.interval * 2 {
                    isSaid = true
                    log.notice(
                        "another worker does not show that it lives: this one joins the group when that one's session is over",
                        ["workers": unseen.keys.sorted(), "session": session])
                }
            }
        }
    }

    /// After this the others have shared the partitions of one that has died, so that the group does not share anew twice in a row.
    private var giveUp: Duration { session + .seconds(2) }

    /// For how long it stays on the roll unless it signs again.
    private var life: Duration { max(giveUp, options.interval * 4) }

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
            // What signs no more goes off the roll by itself.
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

/// How a worker says that it is there.
public struct RollOptions: Sendable {
    /// So often it signs the roll.
    public var interval = Duration.seconds(1)
    /// Which Halcyon it says it is.
    public var version = ""

    /// The defaults.
    public init() {}
}
