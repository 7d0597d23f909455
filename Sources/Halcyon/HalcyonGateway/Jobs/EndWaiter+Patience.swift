import HalcyonWire

extension EndWaiter {
    /// Waits for the end no longer than `limit`.
    /// - Returns: how the job has ended; nil when the time is over first.
    /// - Throws: as ``end()``.
    func end(within limit: Duration) async throws(CancellationError) -> End? {
        typealias Outcome = Result<End?, CancellationError>
        let first = await withTaskGroup(of: Outcome.self) { group in
            group.addTask {
                do throws(CancellationError) {
                    return Outcome.success(try await self.end())
                } catch {
                    return Outcome.failure(error)
                }
            }
            group.addTask {
                do {
                    try await Task.sleep(for: limit)
                    return Outcome.success(nil)
                } catch {
                    return Outcome.failure(CancellationError())
                }
            }
            defer { group.cancelAll() }
            return await group.next() ?? .success(nil)
        }
        return try first.get()
    }
}
