extension FaultKind {
    /// Creates a fault of this kind with a random target, duration and mode.
    func draw(workers: Int, _ numbers: inout some RandomNumberGenerator) -> any Fault {
        let worker = Int.random(in: 0..<workers, using: &numbers)
        func time(_ range: ClosedRange<Int>) -> Duration { .milliseconds(Int.random(in: range, using: &numbers)) }
        let cut: Relay.Condition = Bool.random(using: &numbers) ? .silent : .refusing
        return switch self {
        case .kill: Kill(worker: worker, length: time(0...3000))
        case .freeze: Freeze(worker: worker, length: time(7000...10_000))
        case .rolling: Rolling(workers: workers)
        case .storm: Storm(length: time(8000...12_000))
        case .brokerKill: BrokerKill(length: time(0...3000))
        case .brokerPause: BrokerPause(length: time(300...8000))
        case .transactionPause:
            TransactionPause(
                worker: worker, step: TransactionStep.allCases.randomElement(using: &numbers)!, length: time(300...8000)
            )
        case .redisKill: RedisKill(length: time(0...4000))
        case .redisPause: RedisPause(length: time(500...5000))
        case .redisFlush: RedisFlush()
        case .kafkaCut: Cut(kind: .kafkaCut, worker: worker, how: cut, length: time(1000...10_000))
        case .redisCut: Cut(kind: .redisCut, worker: worker, how: cut, length: time(1000...8000))
        case .poison: Poison()
        case .duplicates: Duplicates()
        case .diskFull: DiskFull(length: time(2000...6000))
        case .storeSlow: StoreSlow(delay: time(100...1500), length: time(3000...8000))
        case .store503: StoreUnavailable(length: time(1000...8000))
        case .storeFull: StoreFull(length: time(2000...6000))
        case .storeCut: Cut(kind: .storeCut, worker: worker, how: cut, length: time(1000...8000))
        }
    }
}
