/// Files that must be refused, many at once and all in one partition.
struct Poison: Fault {
    let kind = FaultKind.poison
    let length = Duration.zero
    let what = "twenty at once"
    let victims: Set<Victim> = []
    let disturbances = 0

    func begin(_ ground: Ground) async throws { try await ground.traffic.burst(.hostile, count: 20) }
    func end(_ ground: Ground) async {}
}

/// A producer that has not heard the acknowledgement sends its jobs again: each is a job of its own, with the id of another.
struct Duplicates: Fault {
    let kind = FaultKind.duplicates
    let length = Duration.zero
    let what = "of the last twenty"
    let victims: Set<Victim> = []
    let disturbances = 0

    func begin(_ ground: Ground) async throws { try await ground.traffic.sendAgain(count: 20) }
    func end(_ ground: Ground) async {}
}
