/// Suspends the task until its continuation is resumed, which `cancel` has to see to when the task is cancelled.
/// - Parameters:
///   - body: puts the continuation where it will be found, or resumes it.
///   - cancel: resumes the continuation if it finds it. It is called when the task is cancelled, on any thread, and
///     again behind `body` where that was before: there is always one call that finds what `body` has left.
public nonisolated(nonsending) func withCancellableContinuation<Success: Sendable>(
    _ body: (CheckedContinuation<Success, Never>) -> Void, onCancel cancel: @Sendable () -> Void
) async -> Success {
    await withTaskCancellationHandler {
        await withCheckedContinuation { continuation in
            body(continuation)
            if Task.isCancelled { cancel() }
        }
    } onCancel: {
        cancel()
    }
}

/// Suspends the task as ``withCancellableContinuation(_:onCancel:)`` does, until its continuation is resumed with a
/// result or an error.
/// - Throws: what the continuation is resumed with.
public nonisolated(nonsending) func withCancellableThrowingContinuation<Success: Sendable>(
    _ body: (CheckedContinuation<Success, any Error>) -> Void, onCancel cancel: @Sendable () -> Void
) async throws -> Success {
    try await withTaskCancellationHandler {
        try await withCheckedThrowingContinuation { continuation in
            body(continuation)
            if Task.isCancelled { cancel() }
        }
    } onCancel: {
        cancel()
    }
}

extension Task {
    /// The result of the task, which is cancelled when the task that waits for it is.
    public var resultCancelledWithWaiter: Result<Success, Failure> {
        get async {
            await withTaskCancellationHandler {
                await result
            } onCancel: {
                cancel()
            }
        }
    }
}
