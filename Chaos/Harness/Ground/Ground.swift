import HalcyonCluster
import Kafka
import Processes
import TestSupport
import Threads
import Vips

/// What a run stands on: real servers, workers with a network of their own each, somebody who sends and somebody who listens.
final class Ground: Sendable {
    /// How it is laid out.
    struct Plan: Sendable {
        var mode = Audit.Mode.atLeastOnce
        var seed: UInt64 = 1
        var workers = 3
        /// Jobs a second.
        var rate = 150
        /// Jobs that have not ended, at most.
        var most = 1500
        var kinds = JobKind.usual
        /// Where the ledger is written to in the end.
        var books: String?
        /// Where every line of the workers' and the broker's logs goes; nil for nowhere.
        var journal: String?
        /// More of the workers' environment.
        var settings: [String: String] = [:]
    }

    let plan: Plan
    let ledger = Ledger()
    let journal: WorkerJournal
    let kafka: ApacheKafka
    let redis: RestartingRedis
    let origin: Origin
    /// The disk on which workers keep sources; nil where none can be mounted.
    let disk: ScratchDisk?
    /// The workers' places; the last is empty until the group is shaken.
    let seats: [Seat]
    let traffic: Traffic

    private let loop: EventLoop
    private let producer: JobProducer
    private let follower: Task<Void, Never>

    /// The grace of workers that are asked to stop.
    static let grace = 10.0
    /// The topics of retries.
    private static let retryDelays: [Duration] = [.seconds(2), .seconds(5)]

    init(_ plan: Plan) async throws {
        self.plan = plan
        journal = WorkerJournal(path: plan.journal)
        VipsLibrary.start()
        loop = EventLoop(name: "relays")
        redis = try await .start()
        origin = try await .start()
        disk = await .mount(mebibytes: 8)
        let doors = (0...plan.workers).map { _ in LoopbackPort.free() }
        var ways: [(kafka: Relay, redis: Relay)] = []
        for door in doors {
            ways.append((try await .start(to: door, on: loop), try await .start(to: redis.port, on: loop)))
        }
        kafka = try await ApacheKafka(
            doors: zip(doors, ways).map { ApacheKafka.Door(port: $0, advertised: $1.kafka.port) },
            hasOwnController: true,
            onLine: { [journal] in journal.noteBroker($0) })
        try await kafka.start()
        let (topics, brokers) = (Topics(retryDelays: Self.retryDelays), kafka.bootstrapServers)
        try await kafka.create([topics.control], partitions: 1)
        try await kafka.create(topics.all.filter { $0 != topics.control }, partitions: Traffic.partitions)
        producer = try JobProducer(brokers: brokers, ledger)
        let (ledger, journal) = (ledger, journal)
        follower = Task { await EventFollower(brokers: brokers, topic: topics.events, ledger: ledger).run() }
        traffic = Traffic(
            producer, ledger, JobMix(origin, seed: plan.seed, kinds: plan.kinds), seed: plan.seed &+ 1,
            rate: plan.rate, most: plan.most)
        let settings = Self.settings(plan, disk)
        seats = ways.enumerated().map { number, way in
            Seat(number, kafka: way.kafka, redis: way.redis, settings: settings, ledger, journal)
        }
        for seat in seats.dropLast() { try await seat.fill() }
    }

    private static func settings(_ plan: Plan, _ disk: ScratchDisk?) -> [String: String] {
        var settings = [
            "HALCYON_DELIVERY": plan.mode.rawValue, "HALCYON_WORKER_CONCURRENCY": "1",
            "HALCYON_WORKER_GRACE": "\(Int(grace))s", "HALCYON_LOG_LEVEL": plan.journal == nil ? "notice" : "info",
            "HALCYON_LOG_FORMAT": "json",
            // Who is tried again has ended soon after the last fault.
            "HALCYON_RETRY_BASE": "500ms", "HALCYON_RETRY_IN_PROCESS": "500ms", "HALCYON_RETRY_BUDGET": "20s",
            "HALCYON_RETRY_DELAYS": retryDelays.map { "\(Int($0 / .seconds(1)))s" }.joined(separator: ","),
            // The hostile files are refused by these.
            "HALCYON_IMAGES_MAXIMUM_PIXELS": "20000000", "HALCYON_IMAGES_MAXIMUM_DECODED_BYTES": "128MiB",
            "HALCYON_IMAGES_MAXIMUM_OUTPUT_PIXELS": "8000000",
        ]
        if let disk { settings["HALCYON_SOURCES_FOLDER"] = disk.path }
        return settings.merging(plan.settings) { $1 }
    }

    /// Waits until all that was sent has ended, or `limit` is over, and a moment more for what would be told twice.
    func quiescence(within limit: Duration, settling: Duration) async throws {
        try? await idle(within: limit)
        try await Task.sleep(for: settling)
    }

    /// Waits until all that was sent has ended, but for so many.
    /// - Throws: `NotInTime`.
    func idle(besides count: Int = 0, within limit: Duration = .seconds(120)) async throws {
        try await until("all jobs end", within: limit) { [ledger] in ledger.open <= count }
    }

    /// What the books say now.
    var audit: Audit {
        Audit(
            mode: plan.mode, sent: ledger.sent, unsure: ledger.unsure, ends: ledger.ends, faults: ledger.faults,
            requests: origin.requests)
    }

    /// Ends the workers in order.
    func closeSeats() async {
        await withDiscardingTaskGroup { group in
            for seat in seats { group.addTask { await seat.vacate() } }
        }
    }

    /// Ends and removes everything.
    func remove() async {
        for seat in seats { await seat.kill() }
        follower.cancel()
        await follower.value
        await producer.close()
        for seat in seats {
            await seat.kafka.close()
            await seat.redis.close()
        }
        await blocking { [loop] in loop.stop() }
        await kafka.remove()
        await redis.stop()
        await origin.stop()
        await disk?.remove()
    }
}
