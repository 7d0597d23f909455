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
