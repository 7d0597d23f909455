import Glibc

/// kill -9, and another one in its place.
struct Kill: Fault {
    let kind = FaultKind.kill
    let worker: Int
    let length: Duration
    var what: String { "worker \(worker)" }
    var victims: Set<Victim> { [.worker(worker)] }
    // It goes, and the other comes: partitions move both times.
    let disturbances = 3

    func begin(_ ground: Ground) async { await ground.seats[worker].kill() }
    func end(_ ground: Ground) async throws { try await ground.seats[worker].fill() }
}

/// A worker stands still until its group has gone on without it.
struct Freeze: Fault {
    let kind = FaultKind.freeze
    let worker: Int
    let length: Duration
    var what: String { "worker \(worker)" }
    var victims: Set<Victim> { [.worker(worker)] }
    let disturbances = 3

    func begin(_ ground: Ground) async { await ground.seats[worker].send(SIGSTOP) }
    func end(_ ground: Ground) async { await ground.seats[worker].send(SIGCONT) }
}

/// Every worker is asked to stop and replaced when it has, one after the other.
struct Rolling: Fault {
    let kind = FaultKind.rolling
    let workers: Int
    let length = Duration.zero
    var what: String { "of all workers" }
    var victims: Set<Victim> { Set((0..<workers).map { .worker($0) }).union([.group]) }
    var disturbances: Int { 2 * workers }

    func begin(_ ground: Ground) async throws {
        for seat in ground.seats.prefix(workers) {
            await seat.vacate()
            try await seat.fill()
        }
    }

    func end(_ ground: Ground) async {}
}

/// One more worker joins, leaves, joins…, every two seconds.
struct Storm: Fault {
    let kind = FaultKind.storm
    let length: Duration
    var what: String { "of a worker that comes and goes" }
    var victims: Set<Victim> { [.group] }
    var disturbances: Int { Int(length / .seconds(1)) }

    private let guest = Guest()

    init(length: Duration) { self.length = length }

    func begin(_ ground: Ground) async {
        await guest.come(to: ground.seats.last!)
    }

    func end(_ ground: Ground) async { await guest.leave(ground.seats.last!) }

    private actor Guest {
        var visits: Task<Void, any Error>?

        func come(to seat: Seat) {
            visits = Task {
                while !Task.isCancelled {
                    try await seat.fill()
                    try await Task.sleep(for: .seconds(2))
                    await seat.vacate()
                    try await Task.sleep(for: .seconds(2))
                }
            }
        }

        func leave(_ seat: Seat) async {
            visits?.cancel()
            _ = await visits?.result
            await seat.vacate()
        }
    }
}
