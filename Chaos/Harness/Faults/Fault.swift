/// Something that goes wrong for a while.
protocol Fault: Sendable {
    /// Its kind.
    var kind: FaultKind { get }
    /// Whom it befalls, and how, for the log.
    var what: String { get }
    /// What no other fault may befall meanwhile.
    var victims: Set<Victim> { get }
    /// How long it lasts.
    var length: Duration { get }
    /// See ``FaultRecord/disturbances``.
    var disturbances: Int { get }
    /// Makes it.
    func begin(_ ground: Ground) async throws
    /// Mends it.
    func end(_ ground: Ground) async throws
}

/// What a fault befalls.
enum Victim: Hashable, Sendable {
    case broker, redis, disk, group
    case worker(Int)
}

/// All kinds of faults.
public enum FaultKind: String, CaseIterable, Sendable {
    /// kill -9 of a worker, and another one in its place.
    case kill
    /// A worker stands still for longer than its group waits for it.
    case freeze
    /// All workers are stopped in order and replaced, one after the other.
    case rolling
    /// A worker joins or leaves the group every two seconds.
    case storm
    /// kill -9 of Kafka's broker.
    case brokerKill = "broker-kill"
    /// The broker stands still.
    case brokerPause = "broker-pause"
    /// The broker stands still as a transaction comes to one of its steps.
    case transactionPause = "transaction-pause"
    /// kill -9 of Redis, which forgets everything.
    case redisKill = "redis-kill"
    /// Redis stands still.
    case redisPause = "redis-pause"
    /// Redis forgets everything.
    case redisFlush = "redis-flush"
    /// The way between one worker and Kafka is cut.
    case kafkaCut = "kafka-cut"
    /// The way between one worker and Redis is cut.
    case redisCut = "redis-cut"
    /// Many files at once that must be refused, all in one partition.
    case poison
    /// A producer sends again what it has sent before.
    case duplicates
    /// The disk for kept sources is full.
    case diskFull = "disk-full"

    /// How often it is drawn, beside the others.
    var weight: Int {
        switch self {
        case .kill: 5
        case .freeze, .kafkaCut: 3
        case .brokerPause, .transactionPause, .redisCut, .poison, .duplicates, .redisFlush: 2
        case .rolling, .storm, .brokerKill, .redisKill, .redisPause, .diskFull: 1
        }
    }

    /// Whether it takes from workers what Redis knows.
    var hitsRedis: Bool {
        switch self {
        case .redisKill, .redisPause, .redisFlush, .redisCut: true
        default: false
        }
    }
}
