import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The sessions of a client. What waits for long has connections of its own, so that a job can be cancelled whatever is waited for.
final class Connections: Sendable {
    /// What an exchange is, by how long it may take.
    enum Kind: Hashable, CaseIterable {
        /// Answered at once.
        case request
        /// Answered when a job has ended.
        case wait
        /// Never ends.
        case stream
    }

    private let sessions: [Kind: URLSession]
    private let delegate = SessionDelegate()

    init(_ options: ClientOptions) {
        let delegate = delegate
        sessions = Dictionary(
            uniqueKeysWithValues: Kind.allCases.map { kind in
                let configuration = URLSessionConfiguration.ephemeral
                configuration.urlCache = nil
                configuration.httpShouldSetCookies = false
                let (seconds, connections) =
                    switch kind {
                    case .request: (options.silence.seconds, 8)
                    case .wait: (options.silence.seconds + options.poll.seconds, options.maximumWaits)
                    case .stream: (options.silence.seconds, 1024)
                    }
                configuration.timeoutIntervalForRequest = seconds
                configuration.httpMaximumConnectionsPerHost = connections
                return (kind, URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil))
            })
    }

    deinit {
        for session in sessions.values { session.finishTasksAndInvalidate() }
    }

    /// Begins an exchange.
    /// - Parameter limit: bytes of the answer that may wait to be read.
    func begin(_ request: URLRequest, _ kind: Kind, limit: Int) -> Transfer {
        let task = sessions[kind]!.dataTask(with: request)
        let transfer = Transfer(task, limit: limit)
        delegate.register(transfer, for: task)
        task.resume()
        return transfer
    }
}

/// Hands what the sessions say to the exchanges it is about.
private final class SessionDelegate: NSObject, URLSessionDataDelegate, Sendable {
    private let transfers = Guarded<[ObjectIdentifier: Transfer]>([:])

    func register(_ transfer: Transfer, for task: URLSessionTask) {
        transfers.withLock { $0[ObjectIdentifier(task)] = transfer }
    }

    private func transfer(of task: URLSessionTask) -> Transfer? {
        transfers.withLock { $0[ObjectIdentifier(task)] }
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        if let response = response as? HTTPURLResponse { transfer(of: dataTask)?.received(response) }
        completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        transfer(of: dataTask)?.received(data)
    }

    /// A gateway sends nobody elsewhere, and the key is for nobody else.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        completionHandler(nil)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        let transfer = transfers.withLock { $0.removeValue(forKey: ObjectIdentifier(task)) }
        transfer?.finish(error.map { .failed($0) } ?? .whole)
    }
}

extension Duration {
    /// In seconds, as Foundation counts.
    var seconds: Double {
        let (seconds, attoseconds) = components
        return Double(seconds) + Double(attoseconds) * 1e-18
    }

    /// In seconds with three decimals, whatever the length: no exponent.
    var inMilliseconds: String {
        let (seconds, attoseconds) = components
        return "\(seconds)." + "\(1000 + attoseconds / 1_000_000_000_000_000)".dropFirst()
    }
}
