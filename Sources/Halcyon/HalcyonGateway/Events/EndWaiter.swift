import HalcyonModel
import HalcyonWire
import Threads

/// Waits for the end of one job. For one task at a time; ``leave()`` must be called in the end.
final class EndWaiter: Sendable {
    /// How a job has ended.
    typealias End = (event: EventView, json: [UInt8])

    private enum State {
        case open
        case waiting(CheckedContinuation<Result<End, CancellationError>, Never>)
        case ended(Result<End, CancellationError>)
    }

    /// The bytes of the job's id.
    fileprivate let jobID: [UInt8]
    private let state = Lock(State.open)
    private let waiters: EndWaiters

    fileprivate init(_ jobID: [UInt8], _ waiters: EndWaiters) {
        self.jobID = jobID
        self.waiters = waiters
    }

    /// The first event that ends the job and has come since the waiter was made, and its JSON.
    /// - Throws: `CancellationError` when the task is cancelled, nobody waits any more, or the feed is closed.
    func end() async throws(CancellationError) -> End {
        let result = await withCancellableContinuation { continuation in
            let known: Result<End, CancellationError>? = state.withLock { state in
                if case .ended(let result) = state { return result }
                state = .waiting(continuation)
                return nil
            }
            if let known { continuation.resume(returning: known) }
        } onCancel: {
            give(.failure(CancellationError()))
        }
        return try result.get()
    }

    /// It waits no more. A second call does nothing.
    func leave() {
        waiters.remove(self)
        give(.failure(CancellationError()))
    }

    /// The first that is given counts.
    fileprivate func give(_ result: Result<End, CancellationError>) {
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

/// All who wait for the ends of jobs.
final class EndWaiters: Sendable {
    private struct State {
        /// By the bytes of the ids: equal strings of Swift may be different ids.
        var byJob: [[UInt8]: [EndWaiter]] = [:]
        var isClosed = false
    }

    private let state = Lock(State())

    /// How many wait.
    var count: Int { state.withLock { $0.byJob.values.reduce(0) { $0 + $1.count } } }

    func add(_ jobID: String) -> EndWaiter {
        let jobID = Array(jobID.utf8)
        let waiter = EndWaiter(jobID, self)
        let isClosed = state.withLock { state in
            if !state.isClosed { state.byJob[jobID, default: []].append(waiter) }
            return state.isClosed
        }
        if isClosed { waiter.give(.failure(CancellationError())) }
        return waiter
    }

    fileprivate func remove(_ waiter: EndWaiter) {
        state.withLock { state in
            state.byJob[waiter.jobID]?.removeAll { $0 === waiter }
            if state.byJob[waiter.jobID]?.isEmpty == true { state.byJob[waiter.jobID] = nil }
        }
    }

    /// Tells those who wait for the job of this event, if it ends it.
    /// - Parameter key: of its record: the job's id.
    func take(key: [UInt8], json: [UInt8]) {
        guard state.withLock({ $0.byJob[key] != nil }), let event = EventView(json: json), event.ending != nil,
            event.jobID?.utf8.elementsEqual(key) == true
        else { return }
        let waiting = state.withLock { $0.byJob.removeValue(forKey: key) ?? [] }
        for waiter in waiting { waiter.give(.success((event, json))) }
    }

    /// Nobody learns more.
    func close() {
        let waiting = state.withLock { state in
            defer { state.byJob = [:] }
            state.isClosed = true
            return state.byJob.values.flatMap(\.self)
        }
        for waiter in waiting { waiter.give(.failure(CancellationError())) }
    }
}

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
