import Concurrency
import HalcyonCluster
import HalcyonCoding
import Kafka
import Redis
import Subprocess
import TestSupport
import Vips

/// The test environment of a run: real servers, workers with a separate network each, a sender of jobs and a reader of
/// events.
final class ChaosEnvironment: Sendable {
    /// The configuration of the environment.
    struct Plan: Sendable {
        var mode = Audit.Mode.atLeastOnce
        var seed: UInt64 = 1
        var workers = 3
        /// The number of jobs per second.
        var rate = 150
        /// The maximum number of jobs that have not ended.
        var most = 1500
        var kinds = JobKind.usual
        /// The result store of the workers.
        var store = StoreKind.none
        /// The executable of the first workers.
        var executable = HalcyonExecutable.path
        /// The file to which the ledger is written at the end.
        var books: String?
        /// The file for all log lines of workers and broker; nil for none.
        var journal: String?
        /// Additional environment variables of the workers.
        var settings: [String: String] = [:]
    }

    let plan: Plan
    let ledger = Ledger()
    let journal: WorkerLogCollector
    let kafka: ApacheKafka
    let redis: RestartingRedis
    let origin: Origin
    /// The disk of the source cache; nil if none can be mounted.
    let disk: ScratchDisk?
    /// The result store of the workers.
    let store: RunStore
    /// The supervised workers. The last one runs only during membership faults.
    let seats: [SupervisedWorker]
    let traffic: Traffic
    /// The servers and workers that faults affect at the moment.
    let victims = VictimSet()

    private let loop: EventLoop
    private let producer: JobProducer
    private let follower: Task<Void, Never>

    /// The grace period of workers in seconds.
    static let grace = 10.0
    /// The delays of the retry topics.
    private static let retryDelays: [Duration] = [.seconds(2), .seconds(5)]
    /// The delays of the delay topics.
    private static let startDelays: [Duration] = [.seconds(1), .seconds(3)]

    init(_ plan: Plan) async throws {
        self.plan = plan
        journal = WorkerLogCollector(path: plan.journal)
        VipsLibrary.start()
        loop = EventLoop(name: "relays")
        redis = try await .start()
        origin = try await .start()
        disk = await .mount(mebibytes: 8)
        store = try await .start(plan.store)
        let ports = (0...plan.workers).map { _ in LoopbackPort.reserve() }
        var ways: [(kafka: Relay, redis: Relay, store: Relay?)] = []
        for port in ports {
            let kafka = try await Relay.start(to: port, on: loop)
            let redis = try await Relay.start(to: redis.port, on: loop)
            let server = store.server
            ways.append((kafka, redis, server == nil ? nil : try await Relay.start(to: server!.port, on: loop)))
        }
        kafka = try await ApacheKafka(
            listeners: zip(ports, ways).map { ApacheKafka.Listener(port: $0, advertised: $1.kafka.port) },
            hasOwnController: true,
            onLine: { [journal] in journal.noteBroker($0) })
        try await kafka.start()
        let (topics, brokers) = (
            Topics(retryDelays: Self.retryDelays, startDelays: Self.startDelays), kafka.bootstrapServers
        )
        try await kafka.create([topics.control], partitions: 1)
        try await kafka.create(topics.all.filter { $0 != topics.control }, partitions: Traffic.partitions)
        try await Self.registerPresets(in: RedisClient(RedisEndpoint(loopbackPort: redis.port)), topics)
        producer = try JobProducer(brokers: brokers, ledger)
        let (ledger, journal) = (ledger, journal)
        follower = Task { await EventFollower(brokers: brokers, topic: topics.events, ledger: ledger).run() }
        traffic = Traffic(
            producer, ledger, JobMix(origin, seed: plan.seed, kinds: plan.kinds), seed: plan.seed &+ 1,
            rate: plan.rate, most: plan.most)
        let (settings, store) = (Self.settings(plan, disk), store)
        seats = ways.enumerated().map { number, way in
            SupervisedWorker(
                number, kafka: way.kafka, redis: way.redis, store: way.store, executable: plan.executable,
                settings: store.settings(port: way.store?.port).merging(settings) { $1 }, ledger, journal)
        }
    }

    /// Starts the workers.
    /// - Throws: ``ChaosError`` if one cannot be started.
    func startWorkers() async throws {
        for supervised in seats.dropLast() { try await supervised.fill() }
    }

    /// Registers a preset for each size of the job mix.
    private static func registerPresets(in redis: RedisClient, _ topics: Topics) async throws {
        let store = PresetStore(redis, topics: topics)
        for (index, size) in JobMix.sizes.enumerated() {
            let preset = try Preset(JobMix.preset(index), json: Array(#"{"job":{\#(size)}}"#.utf8))
            _ = try await store.put(preset)
        }
        await redis.close()
    }

    private static func settings(_ plan: Plan, _ disk: ScratchDisk?) -> [String: String] {
        func list(_ delays: [Duration]) -> String {
            delays.map { "\(Int($0 / .seconds(1)))s" }.joined(separator: ",")
        }
        var settings = [
            "HALCYON_DELIVERY": plan.mode.rawValue, "HALCYON_WORKER_CONCURRENCY": "1",
            "HALCYON_WORKER_GRACE": "\(Int(grace))s", "HALCYON_LOG_LEVEL": plan.journal == nil ? "notice" : "info",
            "HALCYON_LOG_FORMAT": "json",
            // Jobs that are retried must end soon after the last fault.
            "HALCYON_RETRY_BASE_DELAY": "500ms", "HALCYON_RETRY_MAXIMUM_IN_PROCESS_DELAY": "500ms",
            "HALCYON_RETRY_BUDGET": "20s",
            "HALCYON_RETRY_DELAYS": list(retryDelays), "HALCYON_SCHEDULE_DELAYS": list(startDelays),
            // These limits reject the malformed files.
            "HALCYON_IMAGES_MAXIMUM_PIXELS": "20000000", "HALCYON_IMAGES_MAXIMUM_DECODED_BYTES": "128MiB",
            "HALCYON_IMAGES_MAXIMUM_OUTPUT_PIXELS": "8000000",
        ]
        if let disk { settings["HALCYON_SOURCES_DISK_CACHE"] = disk.path }
        return settings.merging(plan.settings) { $1 }
    }

    /// Makes sending jobs fail, because the run cannot continue.
    func abortTraffic() async { await producer.abort() }

    /// Waits until the run cannot continue.
    /// - Throws: The reason: sending jobs has failed, a server has exited without a fault, or a worker cannot be
    ///   started.
    func waitForFailure() async throws -> Never {
        while true {
            try await Task.sleep(for: .seconds(1))
            // After a fault that could not be ended, the schedule waits for the others, and throws its error.
            if producer.isAborted { continue }
            if let error = traffic.failure { throw error }
            for supervised in seats {
                if let failure = await supervised.failure { throw ChaosError(failure) }
            }
            // The victims are taken before a fault begins, and released after it has ended.
            if !victims.contains(.broker), !kafka.isRunning, !victims.contains(.broker) {
                throw ChaosError("Apache Kafka has exited without a fault")
            }
            let isRedisRunning = victims.contains(.redis) ? true : await redis.isRunning
            if !isRedisRunning, !victims.contains(.redis) { throw ChaosError("Redis has exited without a fault") }
        }
    }

    /// Waits until all jobs have ended or `limit` has passed, and then for duplicate events.
    func quiescence(within limit: Duration, settling: Duration) async throws {
        try? await idle(within: limit)
        try await traffic.closeBatches()
        // Batches that do not complete are found by the audit.
        try? await until("all batches complete", within: limit) { batchAudit.incomplete.isEmpty }
        try await Task.sleep(for: settling)
    }

    /// Waits until all but the given number of jobs have ended.
    /// - Throws: `ConditionTimeout`.
    func idle(besides count: Int = 0, within limit: Duration = .seconds(120)) async throws {
        try await until("all jobs end", within: limit) { [ledger] in ledger.open <= count }
    }

    /// False for kinds of faults that need a server, a permission or a mode that this environment does not have.
    func canInject(_ kind: FaultKind) -> Bool {
        switch kind {
        // Only a scratch disk may be filled.
        case .diskFull: disk != nil
        case .transactionPause: plan.mode == .exactlyOnce
        default: store.canInject(kind)
        }
    }

    /// The audit of the content of the result store; nil if there is none.
    /// - Throws: An error if the store cannot be opened.
    func auditStore() async throws -> StoreAudit? {
        guard let store = try store.open() else { return nil }
        store.start()
        let audit = await StoreAudit(sent: ledger.sent, ends: ledger.ends) { await store.find($0) }
        await store.close(within: .zero)
        return audit
    }

    /// The audit of the batches in the current ledger.
    var batchAudit: BatchCompletionAudit {
        BatchCompletionAudit(sent: ledger.sent, ends: ledger.ends, completions: ledger.completions)
    }

    /// The audit of the current ledger.
    var audit: Audit {
        Audit(
            mode: plan.mode, sent: ledger.sent, unsure: ledger.unsure, ends: ledger.ends, faults: ledger.faults,
            requests: origin.requests)
    }

    /// Stops the workers gracefully.
    func closeSeats() async {
        await withDiscardingTaskGroup { group in
            for supervised in seats { group.addTask { await supervised.vacate() } }
        }
    }

    /// Stops all processes and removes all files.
    func remove() async {
        for supervised in seats { await supervised.kill() }
        follower.cancel()
        await follower.value
        await producer.close()
        for supervised in seats {
            await supervised.kafka.close()
            await supervised.redis.close()
            await supervised.store?.close()
        }
        await blocking { [loop] in loop.stop() }
        await kafka.remove()
        await redis.stop()
        await origin.stop()
        await disk?.remove()
        await store.stop()
    }
}

/// The servers and workers that the faults in progress affect.
final class VictimSet: Sendable {
    private let taken = Lock<Set<Victim>>([])

    /// Adds victims, unless another fault affects one of them.
    /// - Returns: False if another fault does.
    func take(_ victims: Set<Victim>) -> Bool {
        taken.withLock { taken in
            guard taken.isDisjoint(with: victims) else { return false }
            taken.formUnion(victims)
            return true
        }
    }

    func release(_ victims: Set<Victim>) { taken.withLock { $0.subtract(victims) } }

    func contains(_ victim: Victim) -> Bool { taken.withLock { $0.contains(victim) } }
}

/// The guarantees cannot be checked, because the run cannot continue.
struct ChaosError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}
