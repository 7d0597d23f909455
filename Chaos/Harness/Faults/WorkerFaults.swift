import Glibc

/// Kills a worker with SIGKILL and starts another one.
struct Kill: Fault {
    let kind = FaultKind.kill
    let worker: Int
    let length: Duration
    var what: String { "worker \(worker)" }
    var victims: Set<Victim> { [.worker(worker)] }
    // Partitions are reassigned when the worker crashes and when the new one joins.
    let disturbances = 3

    func begin(_ environment: ChaosEnvironment) async { await environment.seats[worker].kill() }
    func end(_ environment: ChaosEnvironment) async throws { try await environment.seats[worker].fill() }
}

/// Freezes a worker until it is removed from its group.
struct Freeze: Fault {
    let kind = FaultKind.freeze
    let worker: Int
    let length: Duration
    var what: String { "worker \(worker)" }
    var victims: Set<Victim> { [.worker(worker)] }
    let disturbances = 3

    func begin(_ environment: ChaosEnvironment) async { await environment.seats[worker].send(SIGSTOP) }
    func end(_ environment: ChaosEnvironment) async { await environment.seats[worker].send(SIGCONT) }
}

/// Stops all workers gracefully and replaces them, one after another.
struct Rolling: Fault {
    let kind = FaultKind.rolling
    let workers: Int
    let length = Duration.zero
    var what: String { "of all workers" }
    var victims: Set<Victim> { Set((0..<workers).map { .worker($0) }).union([.group]) }
    var disturbances: Int { 2 * workers }

    func begin(_ environment: ChaosEnvironment) async throws {
        for supervised in environment.seats.prefix(workers) {
            await supervised.vacate()
            try await supervised.fill()
        }
    }

    func end(_ environment: ChaosEnvironment) async {}
}

/// Makes an additional worker join and leave the group every two seconds.
struct Storm: Fault {
    let kind = FaultKind.storm
    let length: Duration
    var what: String { "of a worker that comes and goes" }
    var victims: Set<Victim> { [.group] }
    var disturbances: Int { Int(length / .seconds(1)) }

    private let guest = Guest()

    init(length: Duration) { self.length = length }

    func begin(_ environment: ChaosEnvironment) async {
        await guest.come(to: environment.seats.last!)
    }

    func end(_ environment: ChaosEnvironment) async { await guest.leave(environment.seats.last!) }

    private actor Guest {
        var visits: Task<Void, any Error>?

        func come(to supervised: SupervisedWorker) {
            visits = Task {
                while !Task.isCancelled {
                    try await supervised.fill()
                    try await Task.sleep(for: .seconds(2))
                    await supervised.vacate()
                    try await Task.sleep(for: .seconds(2))
                }
            }
        }

        func leave(_ supervised: SupervisedWorker) async {
            visits?.cancel()
            _ = await visits?.result
            await supervised.vacate()
        }
    }
}
