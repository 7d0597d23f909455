/// The way between one worker and one of its servers is cut.
struct Cut: Fault {
    /// ``FaultKind/kafkaCut`` or ``FaultKind/redisCut``.
    let kind: FaultKind
    let worker: Int
    let how: Relay.Condition
    let length: Duration
    var what: String { "worker \(worker), \(how)" }
    var victims: Set<Victim> { [.worker(worker)] }
    let disturbances = 3

    func begin(_ ground: Ground) async { await relay(ground).set(how) }
    func end(_ ground: Ground) async { await relay(ground).set(.open) }

    private func relay(_ ground: Ground) -> Relay {
        let seat = ground.seats[worker]
        return kind == .kafkaCut ? seat.kafka : seat.redis
    }
}
