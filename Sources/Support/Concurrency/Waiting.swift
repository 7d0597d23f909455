/// Suspends the task until its continuation is resumed. If the task is cancelled, `cancel` must resume it.
/// - Parameters:
///   - isolation: The calling actor, on which `body` runs. It is passed explicitly, because `#isolation` is nil in a
///     `nonisolated(nonsending)` function and `body` would run outside the actor.
///   - body: A closure that stores the continuation, or resumes it.
///   - cancel: A closure that resumes the continuation if it finds it. It is called on any thread when the task is
///     cancelled, and again after `body` if the task was cancelled before. So one call always finds what `body` has
///     stored.
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

/// Suspends the task like ``withCancellableContinuation(isolation:_:onCancel:)`` until its continuation is resumed with
/// a result or an error.
/// - Throws: The error that the continuation is resumed with.
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
    /// The result of the task. Cancelling the waiting task cancels this one.
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
    /// Sleeps for `duration` or until the task is cancelled. For loops that check for cancellation themselves.
    /// - Returns: True if the sleep was not interrupted.
    @discardableResult
    public static func sleepUnlessCancelled(for duration: Duration) async -> Bool {
        await sleepUnlessCancelled(until: .now + duration)
    }

    /// Sleeps until `moment` or until the task is cancelled.
    /// - Returns: True if the sleep was not interrupted.
    @discardableResult
    public static func sleepUnlessCancelled(until moment: ContinuousClock.Instant) async -> Bool {
        // Cancellation is the only possible error.
        (try? await sleep(until: moment)) != nil
    }
}

/// Runs `work` in a task of its own and waits for it, so that cancelling the caller does not cancel the work.
/// - Throws: The error of `work`.
public func withCancellationShield<Success: Sendable, Failure: Error>(
    _ work: @escaping @Sendable () async throws(Failure) -> Success
) async throws(Failure) -> Success {
    let task = Task { () async -> Result<Success, Failure> in
        do throws(Failure) {
            return .success(try await work())
        } catch {
            return .failure(error)
        }
    }
    return try await task.value.get()
}

/// Waits for `work`, but at most for `limit`. Unfinished work continues in the background.
public func withTimeout(_ limit: Duration, _ work: @escaping @Sendable () async -> Void) async {
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

/// Waits for `work`, and cancels it if it has not ended by `deadline`. The work must respond to cancellation.
/// - Throws: The error of `work`; `error` if the deadline has passed.
public func withDeadline(
    _ deadline: ContinuousClock.Instant, throwing error: any Error, _ work: @escaping @Sendable () async throws -> Void
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
