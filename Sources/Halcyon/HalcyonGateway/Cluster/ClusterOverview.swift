import HalcyonCluster
import HalcyonModel
import JSON
import Kafka
import Redis
import Telemetry
import Threads

/// The whole cluster at a glance: what waits in the lanes, which workers there are, how many dead letters. It is looked at when somebody asks, and
/// once for all who ask within ``OverviewOptions/interval``.
///
/// ``close()`` must be called in the end.
actor ClusterOverview {
    nonisolated let options: OverviewOptions
    /// Opens when nobody is to follow it any more.
    nonisolated let ended = Gate()
    private let cluster: GatewayOptions
    private let roll: WorkerRoll
    private let desk: DeadDesk
    private let log: Log
    private var admin: Admin?
    private var last: (json: [UInt8], moment: ContinuousClock.Instant)?
    private var underWay: Task<[UInt8], Never>?
    private(set) var looks = 0

    init(_ cluster: GatewayOptions, redis: RedisClient, desk: DeadDesk, log: Log) {
        options = cluster.overview
        self.cluster = cluster
        roll = WorkerRoll(redis)
        self.desk = desk
        self.log = log
    }

    /// One JSON object: `lanes`, `retries`, `workers` and `dead`; without those of which nothing is known now.
    func json() async -> [UInt8] {
        if let last, .now - last.moment < options.interval { return last.json }
        if let underWay { return await underWay.value }
        looks += 1
        let looking = Task { await look() }
        underWay = looking
        let json = await looking.value
        (last, underWay) = ((json, .now), nil)
        return json
    }

    /// Ends whoever follows it, and its connection.
    func close() async {
        ended.open()
        _ = await underWay?.value
        await admin?.close()
        admin = nil
    }

    private func look() async -> [UInt8] {
        async let workers = workers()
        let kafka = await kafka()
        var writer = JSONWriter(capacity: 2048)
        let entries = await workers
        writer.object { writer in
            if let lag = kafka?.lag {
                writer.name("lanes")
                writer.array { writer in
                    for lane in Lane.allCases {
                        writer.object { writer in
                            writer.member("lane", lane.rawValue)
                            writer.member("lag", lag.count(in: cluster.topics.jobs(lane)))
                        }
                    }
                }
                writer.member("retries", cluster.topics.retries.reduce(0) { $0 + lag.count(in: $1) })
            }
            if let entries {
                writer.name("workers")
                writer.array { writer in for entry in entries { writer.raw(entry) } }
            }
            writer.member("dead", kafka?.dead.map(Int64.init))
        }
        return writer.bytes
    }

    private func workers() async -> [[UInt8]]? {
        do throws(RedisError) {
            return try await roll.entries()
        } catch {
            log.debug("the workers are not known", ["error": "\(error)"])
            return nil
        }
    }

    private func kafka() async -> (lag: GroupLag?, dead: Int?)? {
        do {
            let admin = try admin ?? Admin(properties: cluster.kafka.admin)
            self.admin = admin
            let (topics, patience) = (cluster.topics, options.patience)
            let metadata = try await admin.metadata(within: patience)
            // A group that never was has no lag, and no coordinator may know it yet.
            let lag = try? await GroupLag.of(cluster.group, in: topics.taken, by: admin, metadata, within: patience)
            let letters = (metadata.topics[topics.dead] ?? []).map { TopicPartition(topics.dead, $0.id) }
            let ends = try await admin.watermarks(of: letters, within: patience)
            let dead = await desk.openCount(
                Dictionary(uniqueKeysWithValues: ends.map { ($0.key.partition, $0.value) }))
            return (lag, dead)
        } catch {
            log.debug("the lanes are not known", ["error": "\(error)"])
            return nil
        }
    }
}

/// How a gateway looks at the whole cluster.
public struct OverviewOptions: Sendable {
    /// It looks no oftener than this, however many ask.
    public var interval = Duration.seconds(2)
    /// How long it waits for Kafka, for each thing that it asks; what is not known by then is left out.
    public var patience = Duration.seconds(2)

    /// The defaults.
    public init() {}
}
