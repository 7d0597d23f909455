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
        /// follow redirects either, because the request contains the gateway's key.
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

    /// Refuses redirects: gateways send none, and the key is for the gateway only.
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
