import Glibc
import Subprocess
import TestSupport

/// A supervisor of one worker process with a separate network to Kafka and Redis. It restarts the worker after a crash,
/// as a production supervisor does.
actor SupervisedWorker {
    /// The number of the worker.
    nonisolated let number: Int
    /// The relay to Kafka.
    nonisolated let kafka: Relay
    /// The relay to Redis.
    nonisolated let redis: Relay
    /// The relay to the server of the result store; nil if there is none.
    nonisolated let store: Relay?

    private var executable: String
    private let settings: [String: String]
    private let ledger: Ledger
    private let journal: WorkerLogCollector
    private var child: ChildProcess?
    private var isWanted = false
    private var keeper: Task<Void, Never>?
    /// The number of consecutive workers that ended before they had started, and the end of the last one.
    private var failedStarts = (count: 0, end: "")
    private static let mostFailedStarts = 5

    init(
        _ number: Int, kafka: Relay, redis: Relay, store: Relay?, executable: String, settings: [String: String],
        _ ledger: Ledger, _ journal: WorkerLogCollector
    ) {
        self.number = number
        self.kafka = kafka
        self.redis = redis
        self.store = store
        self.executable = executable
        self.settings = settings
        self.ledger = ledger
        self.journal = journal
    }

    /// Sets the executable of the next worker.
    func use(_ executable: String) { self.executable = executable }

    /// Starts a worker and waits until it logs that it has started, for at most 30 seconds because its servers may be
    /// unavailable.
    /// - Throws: ``ChaosError`` if it cannot be started.
    func fill() async throws {
        guard !isWanted else { return }
        let before = journal.starts(of: number)
        isWanted = true
        keeper = Task { await self.keep() }
        do {
            try await until("worker \(number) starts", within: .seconds(30)) { [journal, number] in
                if await self.failure != nil { return true }
                return journal.starts(of: number) > before
            }
        } catch let timeout as ConditionTimeout {
            say("  \(timeout)")
        }
        if let failure {
            isWanted = false
            await keeper?.value
            failedStarts = (0, "")
            throw ChaosError(failure)
        }
    }

    /// The reason why the worker cannot be started; nil if it was started, or has not failed often.
    var failure: String? {
        guard failedStarts.count >= Self.mostFailedStarts else { return nil }
        return "worker \(number) has ended \(failedStarts.count) times before it had started: \(failedStarts.end)"
    }

    /// Kills the worker with SIGKILL.
    func kill() async {
        isWanted = false
        child?.send(SIGKILL)
        await keeper?.value
    }

    /// Stops the worker gracefully and waits for it. A worker that does not stop within `limit` is killed, which the
    /// ledger records.
    func vacate(within limit: Duration = .seconds(60)) async {
        isWanted = false
        guard let child else { return await keeper?.value ?? () }
        let start = ledger.now
        let exit = await child.stop(grace: limit)
        await keeper?.value
        ledger.add(Ledger.Drain(took: ledger.now - start, isClean: exit == .code(0)))
    }

    /// The resident memory of the worker in bytes, without its children; nil if no worker is running.
    var residentBytes: Int? { child.map { Subprocess.residentBytes(of: $0.pid) } }

    /// Freezes the worker (SIGSTOP) or resumes it (SIGCONT).
    func send(_ signal: Int32) { child?.send(signal) }

    private func keep() async {
        while isWanted {
            let (journal, number) = (journal, number)
            let starts = journal.starts(of: number)
            do {
                let child = try await WorkerProcess.start(
                    executable: executable, brokers: "127.0.0.1:\(kafka.port)",
                    redisPort: redis.port,
                    // Workers have the default timeout, because faults pause Redis.
                    ["HALCYON_REDIS_URL": "redis://127.0.0.1:\(redis.port)"].merging(settings) { $1 },
                    errors: .lines { journal.note($0, of: number) })
                self.child = child
                // The worker was stopped while it was being started.
                if !isWanted { child.send(SIGKILL) }
                let exit = await child.exit()
                self.child = nil
                noteEnd("\(exit)", hadStarted: journal.starts(of: number) > starts)
            } catch {
                noteEnd("\(error)", hadStarted: false)
            }
            if isWanted { try? await Task.sleep(for: .milliseconds(500)) }
        }
    }

    private func noteEnd(_ end: String, hadStarted: Bool) {
        if hadStarted { failedStarts = (0, "") }
        guard isWanted else { return }
        journal.noteEnd(end, of: number, at: ledger.now)
        if !hadStarted { failedStarts = (failedStarts.count + 1, end) }
    }
}
