import Glibc
import Processes
import TestSupport

/// A place for one worker at a time, with a network of its own to Kafka and to Redis. Who sits there and ends by itself is replaced, as
/// whatever runs workers does.
actor Seat {
    /// Which one.
    nonisolated let number: Int
    /// Its way to Kafka.
    nonisolated let kafka: Relay
    /// Its way to Redis.
    nonisolated let redis: Relay

    private let settings: [String: String]
    private let ledger: Ledger
    private let journal: WorkerJournal
    private var child: ChildProcess?
    private var isWanted = false
    private var keeper: Task<Void, Never>?

    init(
        _ number: Int, kafka: Relay, redis: Relay, settings: [String: String], _ ledger: Ledger,
        _ journal: WorkerJournal
    ) {
        self.number = number
        self.kafka = kafka
        self.redis = redis
        self.settings = settings
        self.ledger = ledger
        self.journal = journal
    }

    /// Has a worker run here, and waits until it says that it has started; but not for longer than half a minute, for its servers may be away.
    func fill() async throws {
        guard !isWanted else { return }
        let before = journal.starts(of: number)
        isWanted = true
        keeper = Task { await self.keep() }
        try? await until("worker \(number) starts", within: .seconds(30)) { [journal, number] in
            journal.starts(of: number) > before
        }
    }

    /// Ends it at once, as a crash does.
    func kill() async {
        isWanted = false
        child?.send(SIGKILL)
        await keeper?.value
    }

    /// Asks it to stop, and waits until it has. One that does not within `limit` is killed, and the ledger says so.
    func vacate(within limit: Duration = .seconds(60)) async {
        isWanted = false
        guard let child else { return await keeper?.value ?? () }
        let start = ledger.now
        let exit = await child.stop(grace: limit)
        await keeper?.value
        ledger.add(Ledger.Drain(took: ledger.now - start, isClean: exit == .code(0)))
    }

    /// Bytes of memory that its worker holds, without those of its children; nil where nobody sits.
    var residentBytes: Int? { child.map { Processes.residentBytes(of: $0.pid) } }

    /// Has it stand still (SIGSTOP), or go on (SIGCONT).
    func send(_ signal: Int32) { child?.send(signal) }

    private func keep() async {
        while isWanted {
            do {
                let (journal, number) = (journal, number)
                let child = try await WorkerProcess.start(
                    brokers: "127.0.0.1:\(kafka.port)", redisPort: redis.port, settings,
                    errors: .lines { journal.note($0, of: number) })
                self.child = child
                // It was let go while it was being started.
                if !isWanted { child.send(SIGKILL) }
                let exit = await child.exit()
                self.child = nil
                if isWanted { journal.noteEnd("\(exit)", of: number, at: ledger.now) }
            } catch {
                journal.noteEnd("\(error)", of: number, at: ledger.now)
            }
            if isWanted { try? await Task.sleep(for: .milliseconds(500)) }
        }
    }
}
