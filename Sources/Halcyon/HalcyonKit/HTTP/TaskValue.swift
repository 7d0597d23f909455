/// A task's value. When the one who waits is cancelled the waiting ends at once, and the task goes on.
/// - Throws: what the task throws; `CancellationError`.
func value<Success: Sendable>(of task: Task<Success, any Error>) async throws -> Success {
    let waiter = Guarded<(continuation: CheckedContinuation<Success, any Error>?, cancelled: Bool)>((nil, false))
    return try await withTaskCancellationHandler {
        try await withCheckedThrowingContinuation { continuation in
            let cancelled = waiter.withLock { state in
                if !state.cancelled { state.continuation = continuation }
                return state.cancelled
            }
            if cancelled { return continuation.resume(throwing: CancellationError()) }
            Task {
                let result = await task.result
                waiter.withLock { $0.continuation.take() }?.resume(with: result)
            }
        }
    } onCancel: {
        let continuation = waiter.withLock { state in
            state.cancelled = true
            return state.continuation.take()
        }
        continuation?.resume(throwing: CancellationError())
    }
}
