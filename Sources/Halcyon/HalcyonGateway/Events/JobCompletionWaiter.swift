import Concurrency
import HalcyonCoding
import HalcyonModel

/// Waits for the end of a job. Must be used by one task at a time. ``leave()`` must be called at the end.
final class JobCompletionWaiter: Sendable {
    /// The terminal event of a job.
    typealias End = (event: DecodedEvent, json: [UInt8])

    private enum State {
        case open
        case waiting(CheckedContinuation<Result<End, CancellationError>, Never>)
        case ended(Result<End, CancellationError>)
    }

    /// The job id as bytes.
    fileprivate let jobID: [UInt8]
    private let state = Lock(State.open)
    private let waiters: JobCompletionRegistry

    fileprivate init(_ jobID: [UInt8], _ waiters: JobCompletionRegistry) {
        self.jobID = jobID
        self.waiters = waiters
    }

    /// Waits for the first terminal event of the job since the waiter was registered, and returns it with its JSON.
    /// - Throws: `CancellationError` if the task is cancelled, the waiter is removed, or the feed is closed.
    func end() async throws(CancellationError) -> End {
        let result = await withCancellableContinuation { continuation in
            let known: Result<End, CancellationError>? = state.withLock { state in
                if case .ended(let result) = state { return result }
                state = .waiting(continuation)
                return nil
            }
            if let known { continuation.resume(returning: known) }
        } onCancel: {
            fulfill(.failure(CancellationError()))
        }
        return try result.get()
    }

    /// Removes the waiter. Further calls have no effect.
    func leave() {
        waiters.remove(self)
        fulfill(.failure(CancellationError()))
    }

    /// Completes the waiter. Only the first result counts.
    fileprivate func fulfill(_ result: Result<End, CancellationError>) {
        let waiting: CheckedContinuation<Result<End, CancellationError>, Never>? = state.withLock { state in
            switch state {
            case .ended: return nil
            case .open:
                state = .ended(result)
                return nil
            case .waiting(let continuation):
                state = .ended(result)
                return continuation
            }
        }
        waiting?.resume(returning: result)
    }
}

/// The registered waiters for the ends of jobs.
final class JobCompletionRegistry: Sendable {
    private struct State {
        /// The waiters by job id. Ids are compared as bytes, because Swift strings compare by canonical equivalence.
        var byJob: [[UInt8]: [JobCompletionWaiter]] = [:]
        var isClosed = false
    }

    private let state = Lock(State())

    /// The number of waiters.
    var count: Int { state.withLock { $0.byJob.values.reduce(0) { $0 + $1.count } } }

    func add(_ jobID: String) -> JobCompletionWaiter {
        let jobID = Array(jobID.utf8)
        let waiter = JobCompletionWaiter(jobID, self)
        let isClosed = state.withLock { state in
            if !state.isClosed { state.byJob[jobID, default: []].append(waiter) }
            return state.isClosed
        }
        if isClosed { waiter.fulfill(.failure(CancellationError())) }
        return waiter
    }

    fileprivate func remove(_ waiter: JobCompletionWaiter) {
        state.withLock { state in
            state.byJob[waiter.jobID]?.removeAll { $0 === waiter }
            if state.byJob[waiter.jobID]?.isEmpty == true { state.byJob[waiter.jobID] = nil }
        }
    }

    /// Completes the waiters of a job if this event is terminal.
    /// - Parameter key: the key of the record, which is the job id.
    func receive(key: [UInt8], json: [UInt8]) {
        guard state.withLock({ $0.byJob[key] != nil }), let event = DecodedEvent(json: json), event.ending != nil,
            event.jobID?.utf8.elementsEqual(key) == true
        else { return }
        let waiting = state.withLock { $0.byJob.removeValue(forKey: key) ?? [] }
        for waiter in waiting { waiter.fulfill(.success((event, json))) }
    }

    /// Cancels all waiters.
    func close() {
        let waiting = state.withLock { state in
            defer { state.byJob = [:] }
            state.isClosed = true
            return state.byJob.values.flatMap(\.self)
        }
        for waiter in waiting { waiter.fulfill(.failure(CancellationError())) }
    }
}

extension JobCompletionWaiter {
    /// Waits for the end of the job with a timeout.
    /// - Returns: the terminal event; nil after the timeout.
    /// - Throws: the same errors as ``end()``.
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
