import Concurrency
import HTTPServer
import HalcyonCluster
import HalcyonModel
import JSON
import Kafka
import Redis
import Telemetry

/// The state of the cluster: lag of the lanes, workers, and the number of dead letters. It is collected on request, and
/// once for all requests within ``OverviewOptions/interval``.
///
/// ``close()`` must be called at the end.
actor ClusterOverview {
    nonisolated let options: OverviewOptions
    /// Signaled when streams of the overview must end.
    nonisolated let ended = AsyncEvent()
    private let cluster: GatewayOptions
    private let registry: WorkerRegistry
    private let deadLetters: DeadLetterService
    private let log: Log
    private var admin: Admin?
    private var last: (json: [UInt8], moment: ContinuousClock.Instant)?
    private var inFlight: Task<[UInt8], Never>?
    private(set) var looks = 0

    init(_ cluster: GatewayOptions, redis: RedisClient, deadLetters: DeadLetterService, log: Log) {
        options = cluster.overview
        self.cluster = cluster
        registry = WorkerRegistry(redis)
        self.deadLetters = deadLetters
        self.log = log
    }

    /// Returns a JSON object with `lanes`, `retries`, `workers` and `dead`. Members that are currently unknown are
    /// omitted.
    func json() async -> [UInt8] {
        if let last, .now - last.moment < options.interval { return last.json }
        if let inFlight { return await inFlight.value }
        looks += 1
        let looking = Task { await look() }
        inFlight = looking
        let json = await looking.value
        (last, inFlight) = ((json, .now), nil)
        return json
    }

    /// Ends all streams and closes the Kafka connection.
    func close() async {
        ended.signal()
        _ = await inFlight?.value
        await admin?.close()
        admin = nil
    }

    private func look() async -> [UInt8] {
        async let workers = workers()
        let kafka = await kafka()
        var writer = JSONWriter(capacity: 2048)
        let entries = await workers
        writer.object { writer in
            if let lag = kafka?.lag { WaitingJobs(lag, cluster.topics).writeMembers(to: &writer) }
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
            return try await registry.entries()
        } catch {
            log.debug("failed to read the worker registry", ["error": "\(error)"])
            return nil
        }
    }

    private func kafka() async -> (lag: GroupLag?, dead: Int?)? {
        do {
            let admin = try admin ?? Admin(properties: cluster.kafka.admin)
            self.admin = admin
            let (topics, timeout) = (cluster.topics, options.timeout)
            let metadata = try await admin.metadata(within: timeout)
            // A group that never existed has no lag, and possibly no coordinator.
            let lag = try? await GroupLag.of(cluster.group, in: topics.taken, by: admin, metadata, within: timeout)
            let letters = (metadata.topics[topics.dead] ?? []).map { TopicPartition(topics.dead, $0.id) }
            let ends = try await admin.watermarks(of: letters, within: timeout)
            let dead = await deadLetters.openCount(
                Dictionary(uniqueKeysWithValues: ends.map { ($0.key.partition, $0.value) }))
            return (lag, dead)
        } catch {
            log.debug("failed to read the lag of the lanes", ["error": "\(error)"])
            return nil
        }
    }
}

/// Settings of the cluster overview.
public struct OverviewOptions: Sendable {
    /// The minimum time between two collections.
    public var interval = Duration.seconds(2)
    /// The timeout of each request to Kafka. Values that are unknown by then are omitted.
    public var timeout = Duration.seconds(2)

    /// Creates options with default values.
    public init() {}
}

/// Serves `/v1/cluster`: lanes with their lag, workers and dead letters, as JSON or as an event stream.
struct ClusterRoutes: Sendable {
    let overview: ClusterOverview
    let events: EventOptions
    let streamLimiter: StreamLimiter

    var all: [Route] {
        [
            Route("GET", "/v1/cluster", for: .read) { _ in
                HTTPServer.Response(status: 200, json: await overview.json())
            },
            Route("GET", "/v1/cluster/events", for: .read, kind: .stream) { _ in try streamLimiter.stream(follow) },
        ]
    }

    /// Writes an event `cluster` after each change.
    private func follow(_ writer: HTTPServer.BodyWriter) async throws {
        try await write(ServerSentEvents.retry(events.retry) + [10], to: writer)
        var last: [UInt8] = []
        var said = ContinuousClock.now
        while !overview.ended.isSignaled {
            let json = await overview.json()
            if json != last {
                try await write(
                    ServerSentEvents.name("cluster") + ServerSentEvents.dataName + json + ServerSentEvents.end,
                    to: writer)
                (last, said) = (json, .now)
            } else if .now - said >= events.keepAlive {
                try await write(ServerSentEvents.comment, to: writer)
                said = .now
            }
            try await pause()
        }
    }

    /// Waits until the state may have changed, or the stream must end.
    private func pause() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await Task.sleep(for: min(overview.options.interval, events.keepAlive)) }
            group.addTask { await overview.ended.wait() }
            defer { group.cancelAll() }
            try await group.next()
        }
    }

    /// Writes with a timeout, so that a client that does not read is disconnected.
    private func write(_ bytes: [UInt8], to writer: HTTPServer.BodyWriter) async throws {
        try await withDeadline(.now + events.slowClientTimeout, throwing: CancellationError()) {
            try await writer.write(bytes)
        }
    }
}
