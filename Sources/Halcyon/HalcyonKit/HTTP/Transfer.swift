import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// One exchange of HTTP: its head, then its body in the parts in which it comes. One task reads it.
///
/// What was received and not read yet is bounded: past `limit` the connection is dropped, and the reader is told so after it has read what
/// was there. (A `URLSessionTask` cannot be slowed down: on Linux `suspend()` lets the data come on, and `resume()` asks again from the
/// beginning.)
final class Transfer: Sendable {
    /// How a body ended.
    enum End: Error {
        /// It came whole.
        case whole
        /// More waited to be read than may.
        case overflow
        /// The connection failed.
        case failed(any Error)
        /// The reader's task was cancelled.
        case cancelled
    }

    private struct State {
        var head: HTTPURLResponse?
        var parts: [Data] = []
        var waiting = 0
        var end: End?
        var reader: CheckedContinuation<Void, Never>?
    }

    private let state = Guarded(State())
    private let task: URLSessionTask
    private let limit: Int

    /// - Parameter limit: bytes that may wait to be read.
    init(_ task: URLSessionTask, limit: Int) { (self.task, self.limit) = (task, limit) }

    /// The answer's status and fields.
    /// - Throws: ``End`` when there is none.
    func head() async throws -> HTTPURLResponse {
        try await read { state in
            if let head = state.head { return head }
            if let end = state.end { throw end }
            return nil
        }
    }

    /// The next part of the body; nil after the last.
    /// - Throws: ``End`` when there will be no more, and it did not come whole.
    func next() async throws -> Data? {
        let part: Data?? = try await read { state in
            if !state.parts.isEmpty {
                let part = state.parts.removeFirst()
                state.waiting -= part.count
                return .some(part)
            }
            switch state.end {
            case .whole?: return .some(nil)
            case let end?: throw end
            case nil: return nil
            }
        }
        return part ?? nil
    }

    /// Ends it, at once for the reader.
    func cancel() {
        finish(.cancelled)
        task.cancel()
    }

    // What the session says.

    func received(_ response: HTTPURLResponse) {
        change { $0.head = response }
        if response.expectedContentLength > Int64(limit) { drop() }
    }

    func received(_ part: Data) {
        let fits = change { state in
            guard state.end == nil else { return true }
            guard state.waiting + part.count <= limit else { return false }
            state.parts.append(part)
            state.waiting += part.count
            return true
        }
        if !fits { drop() }
    }

    private func drop() {
        finish(.overflow)
        task.cancel()
    }

    func finish(_ end: End) { change { $0.end = $0.end ?? end } }

    // Between the two.

    @discardableResult
    private func change<Result>(_ body: (inout State) -> Result) -> Result {
        let (result, reader) = state.withLock { state in
            let result = body(&state)
            defer { state.reader = nil }
            return (result, state.reader)
        }
        reader?.resume()
        return result
    }

    /// Waits until `look` has found something, or throws.
    private func read<Found>(_ look: (inout State) throws -> Found?) async throws -> Found {
        try await withTaskCancellationHandler {
            var found: Result<Found, any Error>?
            while true {
                if let found { return try found.get() }
                await withCheckedContinuation { continuation in
                    let parked = state.withLock { state in
                        do { found = try look(&state).map { .success($0) } } catch { found = .failure(error) }
                        if found == nil { state.reader = continuation }
                        return found == nil
                    }
                    if !parked { continuation.resume() }
                }
            }
        } onCancel: {
            cancel()
        }
    }
}
