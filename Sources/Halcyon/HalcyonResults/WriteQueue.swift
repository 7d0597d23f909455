import Concurrency
import Telemetry

/// The writes that no job waits for, within a limit of bytes.
///
/// A job whose result does not fit waits until it does. The queue therefore never drops a result silently, and a
/// storage that hangs costs bounded memory, because writes have a timeout.
final class WriteQueue: Sendable {
    private let permits: PrioritySemaphore
    private let size: Gauge
    private let state = Lock(State())

    /// The size of a permit in bytes.
    private static let unit = 1024

    private struct State {
        var running = 0
        var bytes = 0
        var isClosed = false
        /// The end of the last write of each name.
        var ends: [String: AsyncEvent] = [:]
        /// Set while the queue closes, and signaled when the last write has ended.
        var idle: AsyncEvent?
    }

    /// - Parameters:
    ///   - limit: The maximum size of all results in the queue, in bytes.
    ///   - size: The gauge of the size of the results in the queue, in bytes.
    init(limit: Int, size: Gauge) {
        permits = PrioritySemaphore(max(1, limit / Self.unit))
        self.size = size
    }

    /// Waits for space and starts a write. The queue exceeds its limit by at most one result. Writes of one name run
    /// one after the other.
    /// - Returns: False if the queue is closed.
    /// - Throws: `CancellationError` if the task is cancelled while it waits.
    func add(_ name: String, _ bytes: Int, _ write: @escaping @Sendable () async -> Void) async throws -> Bool {
        let count = max(1, (bytes + Self.unit - 1) / Self.unit)
        try await permits.acquire()
        permits.forceAcquire(count - 1)
        let end = AsyncEvent()
        let (isOpen, previous) = state.withLock { state -> (Bool, AsyncEvent?) in
            guard !state.isClosed else { return (false, nil) }
            state.running += 1
            add(bytes, to: &state)
            return (true, state.ends.updateValue(end, forKey: name))
        }
        guard isOpen else {
            permits.release(count)
            return false
        }
        Task.detached { [self] in
            await previous?.wait()
            await write()
            permits.release(count)
            let idle = state.withLock { state in
                state.running -= 1
                add(-bytes, to: &state)
                if state.ends[name] === end { state.ends[name] = nil }
                return state.running == 0 ? state.idle : nil
            }
            end.signal()
            idle?.signal()
        }
        return true
    }

    /// Waits until no write of this name is in the queue.
    func wait(for name: String) async {
        await state.withLock { $0.ends[name] }?.wait()
    }

    /// Accepts no more writes and waits for those in the queue, at most for a time.
    /// - Returns: The bytes that were not written.
    func close(within time: Duration) async -> Int {
        let idle = AsyncEvent()
        let isIdle = state.withLock { state in
            state.isClosed = true
            state.idle = idle
            return state.running == 0
        }
        if !isIdle { await withTimeout(time) { await idle.wait() } }
        return state.withLock { $0.bytes }
    }

    /// Changes the size and its gauge under the lock, so that the gauge has the last size.
    private func add(_ bytes: Int, to state: inout State) {
        state.bytes += bytes
        size.set(Double(state.bytes))
    }
}
