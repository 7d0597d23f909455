/// Runs a call that blocks on a thread made for it, so that no thread of the cooperative pool waits. For rare calls: opening,
/// closing, administration.
public func blocking<Success: Sendable, Failure: Error>(
    _ work: @escaping @Sendable () throws(Failure) -> Success
) async throws(Failure) -> Success {
    let result: Result<Success, Failure> = await withCheckedContinuation { continuation in
        _ = WorkThread(name: "blocking") {
            do throws(Failure) {
                continuation.resume(returning: .success(try work()))
            } catch {
                continuation.resume(returning: .failure(error))
            }
        }
    }
    return try result.get()
}
