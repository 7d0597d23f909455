import Concurrency
import Glibc
import HalcyonCluster
import Kafka
import Redis
import Subprocess
import TestSupport
import Testing

/// The servers of a test with faults, and workers in separate processes.
struct FaultFixture: Sendable {
    let kafka: ApacheKafka
    let topics: Topics
    let client: RedisClient
    let events: EventLog
    let producer: Producer
    let processes: WorkerProcesses

    /// Runs `body` on the shared Apache Kafka with topics and a redis-server of its own, and stops everything afterwards.
    /// - Parameter environment: Additional environment variables of all workers.
    static func with(_ environment: [String: String], _ body: (FaultFixture) async throws -> Void) async throws {
        let kafka = try #require(SharedApacheKafka.current)
        let topics = Topics(prefix: SharedApacheKafka.uniquePrefix())
        let properties = ["bootstrap.servers": kafka.bootstrapServers]
        try await kafka.create(topics.all, partitions: JobStream.partitions)
        let redis = try await RedisServer.start()
        let client = RedisClient(try RedisEndpoint(redis.url), settings: .patient())
        let events = try await EventLog(topics, properties)
        // Without idempotence a job could be written twice if the broker is killed before it acknowledges, and would be
        // two jobs.
        let producer = try Producer(properties: properties.merging(["enable.idempotence": "true"]) { $1 })
        let processes = WorkerProcesses(
            brokers: kafka.bootstrapServers, prefix: topics.prefix, redis, client, environment: environment)
        let result: Result<Void, any Error>
        do {
            result = .success(
                try await body(
                    FaultFixture(
                        kafka: kafka, topics: topics, client: client, events: events, producer: producer,
                        processes: processes)))
        } catch {
            result = .failure(error)
        }
        await processes.close()
        await events.close()
        await producer.close()
        await client.close()
        await redis.stop()
        try result.get()
    }
}

/// Workers in separate processes, each identified by the name under which it holds leases.
final class WorkerProcesses: Sendable {
    /// A running worker.
    struct Member: Sendable {
        let child: ChildProcess
        /// The process part of the holders of its leases.
        let name: String
    }

    private let brokers: String
    private let prefix: String?
    private let redis: RedisServer
    private let client: RedisClient
    private let environment: [String: String]
    private let list = Lock<[Member]>([])

    /// - Parameters:
    ///   - prefix: The prefix of their topics and their group, if they share the broker with other tests.
    ///   - environment: Additional environment variables of all workers.
    init(
        brokers: String, prefix: String? = nil, _ redis: RedisServer, _ client: RedisClient,
        environment: [String: String]
    ) {
        (self.brokers, self.prefix) = (brokers, prefix)
        self.redis = redis
        self.client = client
        self.environment = environment
    }

    /// The running workers.
    var members: [Member] { list.withLock { $0 } }

    /// Starts another worker, and waits until it has subscribed to its channel.
    /// - Parameter environment: Additional environment variables of this worker.
    @discardableResult
    func add(_ environment: [String: String] = [:]) async throws -> Member {
        let before = try await channels()
        let child = try await WorkerProcess.start(
            brokers: brokers, redisPort: redis.port, prefix: prefix,
            ["HALCYON_LOG_LEVEL": "error"].merging(self.environment) { $1 }.merging(environment) { $1 })
        let name = Lock("")
        try await until("the worker has subscribed to its channel") {
            let new = try await self.channels().subtracting(before).first
            name.withLock { $0 = new ?? "" }
            return new != nil || !child.isRunning
        }
        guard child.isRunning else { throw ConditionTimeout(description: "a worker ended: \(await child.exit())") }
        let member = Member(child: child, name: name.withLock { $0 })
        list.withLock { $0.append(member) }
        return member
    }

    private func channels() async throws -> Set<String> {
        let all = try await client.send("PUBSUB", "CHANNELS", "halcyon:process:*").array ?? []
        return Set(all.compactMap { $0.string.map { String($0.dropFirst("halcyon:process:".count)) } })
    }

    /// Kills a worker.
    func kill(_ member: Member) async {
        list.withLock { $0.removeAll { $0.name == member.name } }
        member.child.send(SIGKILL)
        await member.child.exit()
    }

    /// Stops all workers.
    func close() async {
        await withTaskGroup(of: Void.self) { group in
            for member in members {
                member.child.send(SIGCONT)
                group.addTask { await member.child.stop(grace: .seconds(60)) }
            }
        }
    }
}
