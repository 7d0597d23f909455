/// A fault that lasts for a while.
protocol Fault: Sendable {
    /// The kind of the fault.
    var kind: FaultKind { get }
    /// The target of the fault and how it is affected, for the log.
    var what: String { get }
    /// The targets that no other fault may affect at the same time.
    var victims: Set<Victim> { get }
    /// The duration of the fault.
    var length: Duration { get }
    /// The value for ``FaultRecord/disturbances``.
    var disturbances: Int { get }
    /// Injects the fault.
    func begin(_ environment: ChaosEnvironment) async throws
    /// Ends the fault.
    func end(_ environment: ChaosEnvironment) async throws
}

/// The target of a fault.
enum Victim: Hashable, Sendable {
    case broker, redis, disk, store, group
    case worker(Int)
}

/// The kinds of faults.
public enum FaultKind: String, CaseIterable, Sendable {
    /// SIGKILL of a worker, which is then replaced.
    case kill
    /// A worker is frozen for longer than its session timeout.
    case freeze
    /// All workers are stopped gracefully and replaced, one after another.
    case rolling
    /// A worker joins or leaves the group every two seconds.
    case storm
    /// SIGKILL of the Kafka broker.
    case brokerKill = "broker-kill"
    /// The broker is frozen.
    case brokerPause = "broker-pause"
    /// The broker is frozen just before a step of a transaction.
    case transactionPause = "transaction-pause"
    /// SIGKILL of Redis, which loses all data.
    case redisKill = "redis-kill"
    /// Redis is frozen.
    case redisPause = "redis-pause"
    /// All data in Redis is deleted.
    case redisFlush = "redis-flush"
    /// The network between one worker and Kafka is interrupted.
    case kafkaCut = "kafka-cut"
    /// The network between one worker and Redis is interrupted.
    case redisCut = "redis-cut"
    /// A burst of malformed files in one partition.
    case poison
    /// A producer sends earlier jobs again.
    case duplicates
    /// The disk of the source cache is full.
    case diskFull = "disk-full"
    /// The network between the workers and the result store delivers data late.
    case storeSlow = "store-slow"
    /// The result store responds with 503 to all requests.
    case store503 = "store-503"
    /// The result store has no space left.
    case storeFull = "store-full"
    /// The network between one worker and the result store is interrupted.
    case storeCut = "store-cut"

    /// The relative probability of this kind.
    var weight: Int {
        switch self {
        case .kill: 5
        case .freeze, .kafkaCut: 3
        case .brokerPause, .transactionPause, .redisCut, .poison, .duplicates, .redisFlush, .storeCut: 2
        case .rolling, .storm, .brokerKill, .redisKill, .redisPause, .diskFull, .storeSlow, .store503, .storeFull: 1
        }
    }

    /// True if workers lose data in Redis or the connection to it.
    var hitsRedis: Bool {
        switch self {
        case .redisKill, .redisPause, .redisFlush, .redisCut: true
        default: false
        }
    }

    /// True if workers cannot use the result store, or only slowly.
    public var hitsStore: Bool {
        switch self {
        case .storeSlow, .store503, .storeFull, .storeCut: true
        default: false
        }
    }
}
