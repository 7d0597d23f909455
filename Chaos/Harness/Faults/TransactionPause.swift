import Glibc

/// The requests of a worker during a transaction, in order (KIP-98).
enum TransactionStep: Int16, CaseIterable, Sendable {
    /// AddPartitionsToTxn: adds partitions to the transaction.
    case addPartitions = 24
    /// Produce: sends events.
    case produce = 0
    /// AddOffsetsToTxn: adds the group's offsets to the transaction.
    case addOffsets = 25
    /// TxnOffsetCommit: sends the offsets.
    case commitOffsets = 28
    /// EndTxn: commits or aborts the transaction.
    case end = 26
}

/// Freezes the broker just before a step of a worker's transaction. The request has been sent and not been read.
struct TransactionPause: Fault {
    let kind = FaultKind.transactionPause
    let worker: Int
    let step: TransactionStep
    let length: Duration
    var what: String { "before \(step) of worker \(worker)" }
    var victims: Set<Victim> { [.broker, .worker(worker)] }
    let disturbances = 3

    func begin(_ environment: ChaosEnvironment) async {
        let way = environment.seats[worker].kafka
        // A worker without events starts no transaction. The broker is then frozen at an arbitrary point.
        await way.becomeSilent(before: step.rawValue, within: .seconds(4))
        await environment.kafka.send(SIGSTOP)
        await way.set(.open)
    }

    func end(_ environment: ChaosEnvironment) async { await environment.kafka.send(SIGCONT) }
}
