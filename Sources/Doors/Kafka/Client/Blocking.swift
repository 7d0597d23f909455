import Threads

/// Runs a call that blocks on a thread made for it, so that no thread of the cooperative pool waits. For rare calls: opening,
/// closing, administration.
func blocking<Success: Sendable, Failure: Error>(
    _ work: @escaping @Sendable () throws(Failure) -> Success
) async throws(Failure) -> Success {
    let result: Result<Success, Failure> = await withCheckedContinuation { continuation in
        _ = WorkThread(name: "kafka-call") {
            do throws(Failure) {
                continuation.resume(returning: .success(try work()))
            } catch {
                continuation.resume(returning: .failure(error))
            }
        }
    }
    return try result.get()
}

extension Duration {
    /// Whole milliseconds, rounded up, as librdkafka's time-outs want them.
    var milliseconds: Int32 {
        let (seconds, attoseconds) = components
        let (whole, overflow) = seconds.multipliedReportingOverflow(by: 1000)
        if overflow { return seconds < 0 ? 0 : .max }
        return Int32(clamping: max(0, whole + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000))
    }
}
