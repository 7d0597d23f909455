import Glibc

/// Kills the broker with SIGKILL and restarts it.
struct BrokerKill: Fault {
    let kind = FaultKind.brokerKill
    let length: Duration
    let what = ""
    let victims: Set<Victim> = [.broker]
    let disturbances = 3

    func begin(_ environment: ChaosEnvironment) async { await environment.kafka.kill() }
    func end(_ environment: ChaosEnvironment) async throws { try await environment.kafka.start() }
}

/// Freezes the broker at an arbitrary point of its clients' requests.
struct BrokerPause: Fault {
    let kind = FaultKind.brokerPause
    let length: Duration
    let what = ""
    let victims: Set<Victim> = [.broker]
    let disturbances = 3

    func begin(_ environment: ChaosEnvironment) async { await environment.kafka.send(SIGSTOP) }
    func end(_ environment: ChaosEnvironment) async { await environment.kafka.send(SIGCONT) }
}

/// Kills Redis with SIGKILL and restarts it without data.
struct RedisKill: Fault {
    let kind = FaultKind.redisKill
    let length: Duration
    let what = ""
    let victims: Set<Victim> = [.redis]
    let disturbances = 1

    func begin(_ environment: ChaosEnvironment) async { await environment.redis.kill() }
    func end(_ environment: ChaosEnvironment) async throws { try await environment.redis.restart() }
}

/// Freezes Redis.
struct RedisPause: Fault {
    let kind = FaultKind.redisPause
    let length: Duration
    let what = ""
    let victims: Set<Victim> = [.redis]
    let disturbances = 1

    func begin(_ environment: ChaosEnvironment) async { await environment.redis.send(SIGSTOP) }
    func end(_ environment: ChaosEnvironment) async { await environment.redis.send(SIGCONT) }
}

/// Deletes all data in Redis.
struct RedisFlush: Fault {
    let kind = FaultKind.redisFlush
    let length = Duration.zero
    let what = ""
    let victims: Set<Victim> = [.redis]
    let disturbances = 1

    func begin(_ environment: ChaosEnvironment) async throws { try await environment.redis.flush() }
    func end(_ environment: ChaosEnvironment) async {}
}

/// Fills the disk of the source cache.
struct DiskFull: Fault {
    let kind = FaultKind.diskFull
    let length: Duration
    let what = ""
    let victims: Set<Victim> = [.disk]
    let disturbances = 0

    func begin(_ environment: ChaosEnvironment) async throws { try await environment.disk?.fill() }
    func end(_ environment: ChaosEnvironment) async throws { try await environment.disk?.clear() }
}
