import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension HalcyonClient {
    /// Sends the HTTP requests of a client: ``URLSessionTransport``, unless another one is injected.
    public protocol Transport: Sendable {
        /// Sends a request and returns the response as soon as its head has arrived.
        ///
        /// A transport does not retry: the client does that, after any error but `CancellationError`. It must not
        /// follow redirects either, because the request contains the gateway's key. The client follows those to the
        /// result store with a request of its own, without the key.
        /// - Parameters:
        ///   - request: The request. Its `timeoutInterval` is the longest time without a byte.
        ///   - kind: The kind of request.
        ///   - bufferLimit: The number of bytes of the body that may be buffered ahead of its reader.
        func send(_ request: URLRequest, kind: RequestKind, bufferLimit: Int) async throws -> Response
    }

    /// The kind of a request, by the time until its response is complete.
    public enum RequestKind: Sendable, Hashable, CaseIterable {
        /// Completed at once, when a job ends, or never.
        case immediate, longPoll, eventStream
    }

    /// The response to a request.
    public struct Response: Sendable {
        /// The status code.
        public let status: Int
        /// The header fields.
        public let headers: [String: String]
        /// The parts of the body. The exchange is cancelled when this is released before its end.
        public let body: AsyncThrowingStream<Data, any Error>

        /// Creates a response whose body is still arriving.
        public init(status: Int, headers: [String: String] = [:], body: AsyncThrowingStream<Data, any Error>) {
            (self.status, self.headers, self.body) = (status, headers, body)
        }

        /// Creates a response with a complete body.
        public init(status: Int, headers: [String: String] = [:], body: Data = Data()) {
            let stream = AsyncThrowingStream<Data, any Error> { continuation in
                continuation.yield(body)
                continuation.finish()
            }
            self.init(status: status, headers: headers, body: stream)
        }

        /// The value of a header field, whose name may be in any case.
        func header(_ name: String) -> String? {
            headers.first { $0.key.caseInsensitiveCompare(name) == .orderedSame }?.value
        }
    }

    /// A transport on `URLSession`.
    ///
    /// Requests, long polls and event streams have connections of their own, so that a job can be cancelled however
    /// many are waited for.
    public final class URLSessionTransport: Transport {
        private let immediate, longPolls, eventStreams: URLSession
        private let delegate: SessionDelegate

        /// A configuration without cache, cookies and stored credentials.
        public static var defaultConfiguration: URLSessionConfiguration {
            let configuration = URLSessionConfiguration.ephemeral
            configuration.urlCache = nil
            configuration.httpShouldSetCookies = false
            return configuration
        }

        /// Creates a transport.
        /// - Parameters:
        ///   - configuration: The configuration of all sessions, except for the number of connections and the time-outs
        ///     between bytes, which the client sets.
        ///   - maximumConcurrentWaits: The number of long polls that are sent at the same time.
        public init(
            configuration: URLSessionConfiguration = URLSessionTransport.defaultConfiguration,
            maximumConcurrentWaits: Int = Configuration().maximumConcurrentWaits
        ) {
            let delegate = SessionDelegate()
            func session(_ connections: Int) -> URLSession {
                let configuration = configuration.copy() as! URLSessionConfiguration
                configuration.httpMaximumConnectionsPerHost = connections
                return URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
            }
            immediate = session(8)
            longPolls = session(maximumConcurrentWaits)
            eventStreams = session(1024)
            self.delegate = delegate
        }

        deinit {
            for session in [immediate, longPolls, eventStreams] { session.finishTasksAndInvalidate() }
        }

        private func session(for kind: RequestKind) -> URLSession {
            switch kind {
            case .immediate: immediate
            case .longPoll: longPolls
            case .eventStream: eventStreams
            }
        }

        /// Sends a request on the connections for its kind.
        public func send(_ request: URLRequest, kind: RequestKind, bufferLimit: Int) async throws -> Response {
            let task = session(for: kind).dataTask(with: request)
            let exchange = HTTPExchange(task, bufferLimit: bufferLimit)
            delegate.register(exchange, for: task)
            task.resume()
            let head = try await exchange.head()
            let reader = HTTPExchange.Reader(exchange)
            var headers: [String: String] = [:]
            for case (let name as String, let value as String) in head.allHeaderFields { headers[name] = value }
            return Response(
                status: head.statusCode, headers: headers,
                body: AsyncThrowingStream(unfolding: { try await reader.exchange.next() }))
        }
    }
}

/// Passes the callbacks of the sessions to their exchanges.
private final class SessionDelegate: NSObject, URLSessionDataDelegate, Sendable {
    private let exchanges = Locked<[ObjectIdentifier: HTTPExchange]>([:])

    func register(_ exchange: HTTPExchange, for task: URLSessionTask) {
        exchanges.withLock { $0[ObjectIdentifier(task)] = exchange }
    }

    private func exchange(of task: URLSessionTask) -> HTTPExchange? {
        exchanges.withLock { $0[ObjectIdentifier(task)] }
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        if let response = response as? HTTPURLResponse { exchange(of: dataTask)?.receive(response) }
        completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        exchange(of: dataTask)?.receive(data)
    }

    /// Refuses redirects, because the key is for the gateway only.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        completionHandler(nil)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        let exchange = exchanges.withLock { $0.removeValue(forKey: ObjectIdentifier(task)) }
        exchange?.finish(error.map { .failure($0) } ?? .success(()))
    }
}

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
