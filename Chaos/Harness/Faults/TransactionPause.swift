import Glibc

/// What a worker asks the broker for in the course of a transaction, in this order (KIP-98).
enum TransactionStep: Int16, CaseIterable, Sendable {
    /// Partitions are to be part of it.
    case addPartitions = 24
    /// Events are sent.
    case produce = 0
    /// The group's offsets are to be part of it.
    case addOffsets = 25
    /// Offsets are sent.
    case commitOffsets = 28
    /// It is committed, or aborted.
    case end = 26
}

/// The broker stands still just as a worker's transaction comes to one of its steps: the request is on its way, and nobody has read it.
struct TransactionPause: Fault {
    let kind = FaultKind.transactionPause
    let worker: Int
    let step: TransactionStep
    let length: Duration
    var what: String { "before \(step) of worker \(worker)" }
    var victims: Set<Victim> { [.broker, .worker(worker)] }
    let disturbances = 3

    func begin(_ ground: Ground) async {
        let way = ground.seats[worker].kafka
        // A worker that has nothing to tell makes none; then any moment is as good.
        await way.becomeSilent(before: step.rawValue, within: .seconds(4))
        await ground.kafka.send(SIGSTOP)
        await way.set(.open)
    }

    func end(_ ground: Ground) async { await ground.kafka.send(SIGCONT) }
}
