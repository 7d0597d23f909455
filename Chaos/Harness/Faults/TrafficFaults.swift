/// Sends many malformed files at once, all to one partition.
struct Poison: Fault {
    let kind = FaultKind.poison
    let length = Duration.zero
    let what = "twenty at once"
    let victims: Set<Victim> = []
    let disturbances = 0

    func begin(_ environment: ChaosEnvironment) async throws {
        try await environment.traffic.burst(.hostile, count: 20)
    }
    func end(_ environment: ChaosEnvironment) async {}
}

/// Sends jobs again, like a producer that missed the acknowledgement. Each duplicate is a separate job with the id of
/// an earlier one.
struct Duplicates: Fault {
    let kind = FaultKind.duplicates
    let length = Duration.zero
    let what = "of the last twenty"
    let victims: Set<Victim> = []
    let disturbances = 0

    func begin(_ environment: ChaosEnvironment) async throws { try await environment.traffic.sendAgain(count: 20) }
    func end(_ environment: ChaosEnvironment) async {}
}
