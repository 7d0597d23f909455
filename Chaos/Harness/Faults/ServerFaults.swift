import Glibc

/// kill -9 of the broker, which is started again.
struct BrokerKill: Fault {
    let kind = FaultKind.brokerKill
    let length: Duration
    let what = ""
    let victims: Set<Victim> = [.broker]
    let disturbances = 3

    func begin(_ ground: Ground) async { await ground.kafka.kill() }
    func end(_ ground: Ground) async throws { try await ground.kafka.start() }
}

/// The broker stands still, wherever its clients are with what they asked for.
struct BrokerPause: Fault {
    let kind = FaultKind.brokerPause
    let length: Duration
    let what = ""
    let victims: Set<Victim> = [.broker]
    let disturbances = 3

    func begin(_ ground: Ground) async { await ground.kafka.send(SIGSTOP) }
    func end(_ ground: Ground) async { await ground.kafka.send(SIGCONT) }
}

/// kill -9 of Redis, which comes back with nothing in it.
struct RedisKill: Fault {
    let kind = FaultKind.redisKill
    let length: Duration
    let what = ""
    let victims: Set<Victim> = [.redis]
    let disturbances = 1

    func begin(_ ground: Ground) async { await ground.redis.kill() }
    func end(_ ground: Ground) async throws { try await ground.redis.restart() }
}

/// Redis stands still.
struct RedisPause: Fault {
    let kind = FaultKind.redisPause
    let length: Duration
    let what = ""
    let victims: Set<Victim> = [.redis]
    let disturbances = 1

    func begin(_ ground: Ground) async { await ground.redis.send(SIGSTOP) }
    func end(_ ground: Ground) async { await ground.redis.send(SIGCONT) }
}

/// Redis forgets everything.
struct RedisFlush: Fault {
    let kind = FaultKind.redisFlush
    let length = Duration.zero
    let what = ""
    let victims: Set<Victim> = [.redis]
    let disturbances = 1

    func begin(_ ground: Ground) async throws { try await ground.redis.flush() }
    func end(_ ground: Ground) async {}
}

/// The disk on which workers keep sources is full.
struct DiskFull: Fault {
    let kind = FaultKind.diskFull
    let length: Duration
    let what = ""
    let victims: Set<Victim> = [.disk]
    let disturbances = 0

    func begin(_ ground: Ground) async { ground.disk?.fill() }
    func end(_ ground: Ground) async { ground.disk?.clear() }
}
