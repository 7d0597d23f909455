import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// One HTTP exchange: its head, then the parts of its body as they arrive. It is read by one task.
///
/// The data that has been received and not yet read is bounded: beyond the limit the connection is dropped, and the
/// reader gets ``BufferOverflow`` after the buffered data. (A `URLSessionTask` cannot be slowed down: on Linux data
/// keeps arriving after `suspend()`, and `resume()` sends the request again.)
final class HTTPExchange: Sendable {
    /// The reader was too slow for the buffer.
    struct BufferOverflow: Error {}

    /// Cancels the exchange when it is released.
    final class Reader: Sendable {
        let exchange: HTTPExchange
        init(_ exchange: HTTPExchange) { self.exchange = exchange }
        deinit { exchange.cancel() }
    }

    private struct State {
        var head: HTTPURLResponse?
        var parts: [Data] = []
        var bufferedBytes = 0
        var end: Result<Void, any Error>?
        var reader: CheckedContinuation<Void, Never>?
    }

    private let state = Locked(State())
    private let task: URLSessionTask
    private let bufferLimit: Int

    init(_ task: URLSessionTask, bufferLimit: Int) { (self.task, self.bufferLimit) = (task, bufferLimit) }

    // MARK: The reader

    /// Waits for the status and the header fields.
    func head() async throws -> HTTPURLResponse {
        try await wait { state in
            if state.head == nil, let end = state.end {
                try end.get()
                throw URLError(.badServerResponse)
            }
            return state.head
        }
    }

    /// Waits for the next part of the body; nil after the last one.
    func next() async throws -> Data? {
        try await wait { state -> Data?? in
            guard state.parts.isEmpty else {
                let part = state.parts.removeFirst()
                state.bufferedBytes -= part.count
                return .some(part)
            }
            try state.end?.get()
            return state.end == nil ? nil : .some(nil)
        }
    }

    /// Ends the exchange, for its reader at once.
    func cancel() { abort(CancellationError()) }

    /// Waits until `condition` returns a value or throws.
    private func wait<Value>(_ condition: (inout State) throws -> Value?) async throws -> Value {
        try await withTaskCancellationHandler {
            while true {
                var result: Result<Value?, any Error> = .success(nil)
                await withCheckedContinuation { continuation in
                    let isWaiting = state.withLock { state in
                        result = Result { try condition(&state) }
                        guard case .success(.none) = result else { return false }
                        state.reader = continuation
                        return true
                    }
                    if !isWaiting { continuation.resume() }
                }
                if let value = try result.get() { return value }
            }
        } onCancel: {
            cancel()
        }
    }

    // MARK: The session

    func receive(_ response: HTTPURLResponse) {
        update { $0.head = response }
        if response.expectedContentLength > Int64(bufferLimit) { abort(BufferOverflow()) }
    }

    func receive(_ part: Data) {
        let fits = update { state in
            guard state.end == nil else { return true }
            guard state.bufferedBytes + part.count <= bufferLimit else { return false }
            state.parts.append(part)
            state.bufferedBytes += part.count
            return true
        }
        if !fits { abort(BufferOverflow()) }
    }

    func finish(_ end: Result<Void, any Error>) { update { $0.end = $0.end ?? end } }

    private func abort(_ error: any Error) {
        finish(.failure(error))
        task.cancel()
    }

    /// Changes the state and wakes the reader.
    @discardableResult
    private func update<Result>(_ change: (inout State) -> Result) -> Result {
        let (result, reader) = state.withLock { state in
            let result = change(&state)
            defer { state.reader = nil }
            return (result, state.reader)
        }
        reader?.resume()
        return result
    }
}

/// A value behind a lock. (`Mutex` needs iOS 18.)
///
/// Unchecked, because the compiler does not see that `value` is only used under `lock`.
final class Locked<Value>: @unchecked Sendable {
    private let lock = NSLock()
    private var value: Value

    init(_ value: Value) { self.value = value }

    func withLock<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result {
        lock.lock()
        defer { lock.unlock() }
        return try body(&value)
    }
}
