/// Suspends the task until its continuation is resumed, which `cancel` has to see to when the task is cancelled.
/// - Parameters:
///   - isolation: the actor that calls, on which `body` runs. It is handed on by hand: `#isolation` in a function that
///     is `nonisolated(nonsending)` is nil, and `body` would run beside the actor.
///   - body: puts the continuation where it will be found, or resumes it.
///   - cancel: resumes the continuation if it finds it. It is called when the task is cancelled, on any thread, and
///     again behind `body` where that was before: there is always one call that finds what `body` has left.
public func withCancellableContinuation<Success: Sendable>(
    isolation: isolated (any Actor)? = #isolation, _ body: (CheckedContinuation<Success, Never>) -> Void,
    onCancel cancel: @Sendable () -> Void
) async -> Success {
    await withTaskCancellationHandler(
        operation: {
            await withCheckedContinuation(isolation: isolation) { continuation in
                body(continuation)
                if Task.isCancelled { cancel() }
            }
        }, onCancel: cancel, isolation: isolation)
}

/// Suspends the task as ``withCancellableContinuation(isolation:_:onCancel:)`` does, until its continuation is resumed
/// with a result or an error.
/// - Throws: what the continuation is resumed with.
public func withCancellableThrowingContinuation<Success: Sendable>(
    isolation: isolated (any Actor)? = #isolation, _ body: (CheckedContinuation<Success, any Error>) -> Void,
    onCancel cancel: @Sendable () -> Void
) async throws -> Success {
    try await withTaskCancellationHandler(
        operation: {
            try await withCheckedThrowingContinuation(isolation: isolation) { continuation in
                body(continuation)
                if Task.isCancelled { cancel() }
            }
        }, onCancel: cancel, isolation: isolation)
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

extension Task where Success == Never, Failure == Never {
    /// Sleeps for so long, or until the task is cancelled: for loops that see for themselves whether to go on.
    /// - Returns: whether it slept to the end.
    @discardableResult
    public static func sleepUnlessCancelled(for duration: Duration) async -> Bool {
        await sleepUnlessCancelled(until: .now + duration)
    }

    /// Sleeps until a moment, or until the task is cancelled.
    /// - Returns: whether it slept to the end.
    @discardableResult
    public static func sleepUnlessCancelled(until moment: ContinuousClock.Instant) async -> Bool {
        // Cancellation is the only error there is.
        (try? await sleep(until: moment)) != nil
    }
}

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
