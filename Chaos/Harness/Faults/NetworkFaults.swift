/// Interrupts the network between one worker and one of its servers.
struct Cut: Fault {
    /// Either ``FaultKind/kafkaCut`` or ``FaultKind/redisCut``.
    let kind: FaultKind
    let worker: Int
    let how: Relay.Condition
    let length: Duration
    var what: String { "worker \(worker), \(how)" }
    var victims: Set<Victim> { [.worker(worker)] }
    let disturbances = 3

    func begin(_ environment: ChaosEnvironment) async { await relay(environment).set(how) }
    func end(_ environment: ChaosEnvironment) async { await relay(environment).set(.open) }

    private func relay(_ environment: ChaosEnvironment) -> Relay {
        let supervised = environment.seats[worker]
        return kind == .kafkaCut ? supervised.kafka : supervised.redis
    }
}
