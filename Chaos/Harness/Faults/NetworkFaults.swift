/// Interrupts the network between one worker and one of its servers.
struct Cut: Fault {
    /// ``FaultKind/kafkaCut``, ``FaultKind/redisCut`` or ``FaultKind/storeCut``.
    let kind: FaultKind
    let worker: Int
    let how: Relay.Condition
    let length: Duration
    var what: String { "worker \(worker), \(how)" }
    var victims: Set<Victim> { kind == .storeCut ? [.worker(worker), .store] : [.worker(worker)] }
    var disturbances: Int { kind == .storeCut ? 0 : 3 }

    func begin(_ environment: ChaosEnvironment) async { await relay(environment)?.set(how) }
    func end(_ environment: ChaosEnvironment) async { await relay(environment)?.set(.open) }

    private func relay(_ environment: ChaosEnvironment) -> Relay? {
        let supervised = environment.seats[worker]
        return switch kind {
        case .kafkaCut: supervised.kafka
        case .storeCut: supervised.store
        default: supervised.redis
        }
    }
}
