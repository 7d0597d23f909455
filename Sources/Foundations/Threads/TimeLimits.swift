/// Waits for `work`, but no longer than `limit`: what is left of it then goes on in the background.
public func atMost(_ limit: Duration, _ work: @escaping @Sendable () async -> Void) async {
    let isOver = Lock(false)
    await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
        @Sendable func end() {
            let isFirst = isOver.withLock { isOver in
                defer { isOver = true }
                return !isOver
            }
            if isFirst { continuation.resume() }
        }
        let timer = Task {
            try await Task.sleep(for: limit)
            end()
        }
        Task {
            await work()
            timer.cancel()
            end()
        }
    }
}

/// Waits for `work`, which is cancelled when it has not ended by `deadline`, and must heed that.
/// - Throws: what `work` throws; `error` when it was too late.
public func by(
    _ deadline: ContinuousClock.Instant, orThrow error: any Error, _ work: @escaping @Sendable () async throws -> Void
) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { try await work() }
        group.addTask {
            try await Task.sleep(until: deadline, clock: .continuous)
            throw error
        }
        defer { group.cancelAll() }
        try await group.next()
    }
}
