import Concurrency
import Telemetry

/// Protects jobs from a storage that is slow or down: timeouts, and a circuit breaker that skips it for a while after
/// five failures in a row.
final class StorageGuard: Sendable {
    /// The log and counter of failures that disturb nobody.
    let errors: ToleratedErrors
    private let breaker: Lock<CircuitBreaker<String>>
    private let failures: [StorageError.Kind: Counter]
    private let serving: Gauge
    private let isFull = Lock(false)

    /// - Parameter operation: `read` or `write`, for metrics.
    init(_ operation: String, log: Log, metrics: Metrics) {
        breaker = Lock(
            CircuitBreaker(
                CircuitBreaker.Policy(
                    failures: 5, openTime: Backoff(initial: .seconds(1), maximum: .seconds(30), jitter: 0.2))))
        failures = Dictionary(
            uniqueKeysWithValues: StorageError.Kind.allCases.map { kind in
                (
                    kind,
                    metrics.counter(
                        "halcyon_result_store_errors_total",
                        help: "Failed operations of the result store, by operation (read, write) and reason.",
                        labels: ["operation": operation, "reason": kind.rawValue])
                )
            })
        serving = metrics.gauge(
            "halcyon_result_store_up",
            help: "1 while the result store is used for an operation, 0 while it is skipped after repeated failures.",
            labels: ["operation": operation])
        serving.set(1)
        errors = ToleratedErrors(of: "result store", log: log, metrics: metrics)
    }

    /// Runs an operation that may fail.
    /// - Returns: Its result; nil after a failure, which is counted and logged.
    @discardableResult
    func attempt<Success: Sendable>(
        within limit: Duration, _ body: @escaping @Sendable () async throws(StorageError) -> Success
    ) async -> Success? {
        await errors.tolerating { try await run(within: limit, body) }
    }

    /// Runs an operation with a timeout, and cancels it then. If it cannot be interrupted, it ends in the background.
    /// - Throws: ``StorageError``, `unavailable` after the timeout and while the circuit breaker is open.
    func run<Success: Sendable>(
        within limit: Duration, _ body: @escaping @Sendable () async throws(StorageError) -> Success
    ) async throws(StorageError) -> Success {
        let isProbe = try begin()
        let work = Task {
            do throws(StorageError) { return Result<Success, StorageError>.success(try await body()) } catch {
                return .failure(error)
            }
        }
        let ended = Lock<Result<Success, StorageError>?>(nil)
        await withTimeout(limit) {
            let result = await work.value
            ended.withLock { $0 = result }
        }
        work.cancel()
        let result = ended.withLock { $0 } ?? .failure(StorageError(.unavailable, "no response within \(limit)"))
        end(result, isProbe: isProbe)
        return try result.get()
    }

    /// Returns true once after a failure for lack of space.
    func takeFull() -> Bool {
        isFull.withLock { isFull in
            defer { isFull = false }
            return isFull
        }
    }

    private func begin() throws(StorageError) -> Bool {
        let now = ContinuousClock.now
        let (state, isProbe) = breaker.withLock { ($0.state(at: now), $0.beginProbe(at: now)) }
        switch state {
        case .closed, .halfOpen: return isProbe
        case .open(let end): throw skipped(retryAfter: end - now)
        case .probing: throw skipped(retryAfter: .zero)
        }
    }

    private func skipped(retryAfter: Duration) -> StorageError {
        StorageError(.unavailable, "skipped after repeated failures", retryAfter: retryAfter)
    }

    private func end<Success>(_ result: Result<Success, StorageError>, isProbe: Bool) {
        var outcome = CircuitBreaker<String>.Outcome.success
        if case .failure(let error) = result {
            failures[error.kind]?.add()
            if error.kind == .full { isFull.withLock { $0 = true } }
            switch error.kind {
            case .unavailable, .full, .forbidden, .misconfigured: outcome = .failure
            case .tooLarge: outcome = .success
            case .cancelled: outcome = .unknown
            }
        }
        let now = ContinuousClock.now
        let isServing = breaker.withLock { breaker in
            breaker.record(outcome, of: "", isProbe: isProbe, at: now)
            return breaker.state(at: now) == .closed
        }
        serving.set(isServing ? 1 : 0)
    }
}
