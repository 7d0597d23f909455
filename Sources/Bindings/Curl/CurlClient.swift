import CCurl
import Concurrency

/// An HTTP client for HTTP/1.1, and for HTTP/2 over TLS if the peer supports it, with persistent connections.
///
/// One thread serves all requests. DNS lookups run on other threads. ``close()`` must be called in the end.
public final class CurlClient: Sendable {
    private let queue = BatchQueue<MultiHandle.Message>()
    private let engine: MultiHandle
    private let settings: CurlSettings

    /// Creates a client, which is ready immediately.
    public init(_ settings: CurlSettings = CurlSettings()) {
        self.settings = settings
        engine = MultiHandle(queue, settings)
    }

    /// Sends a request and waits for the whole response.
    ///
    /// Cancelling the task ends the transfer immediately. If the peer is in the middle of a response, its connection is
    /// closed.
    /// - Parameters:
    ///   - progress: callback for each received part of the body. It runs on the client's thread and must return
    ///     quickly.
    ///   - admission: the number of bytes of the response body that may be held, and a function to request more; nil
    ///     for no limit.
    /// - Throws: the reason for which there is no response. A status of 400 and above is a response.
    public nonisolated(nonsending) func execute(
        _ request: HTTPRequest, progress: (@Sendable (HTTPProgress) -> Void)? = nil, admission: HTTPAdmission? = nil
    ) async throws(CurlError) -> HTTPResponse {
        if Task.isCancelled { throw .cancelled }
        try request.check()
        let transfer = Transfer(
            request, allowsAddress: settings.allowsAddress, progress: progress, admission: admission,
            onAdmission: { [self] in post(.resume($0, admitted: $1)) })
        return try await withCancellableContinuation { continuation in
            transfer.wait(continuation)
            if !post(.start(transfer)) { transfer.answer(.failure(.closed)) }
        } onCancel: {
            post(.cancel(transfer))
        }.get()
    }

    /// Ends every transfer and connection. Transfers in flight and later ones fail with ``CurlError/Code/closed``.
    /// Returns when the client's thread has exited. A second call has no effect.
    public func close() async {
        for case .start(let transfer) in queue.close() { transfer.answer(.failure(.closed)) }
        await engine.stop()
    }

    /// Posts a message to the client's thread. Returns false if the client is closed.
    @discardableResult
    private func post(_ message: MultiHandle.Message) -> Bool {
        switch queue.enqueue(message) {
        case .first:
            engine.wake()
            return true
        case .queued: return true
        case .full, .closed: return false
        }
    }
}

/// Properties of the libcurl library.
public enum CurlLibrary {
    /// The version that is loaded at run time, such as `7.88.1`.
    public static var version: String { String(cString: ccurl_version()) }
}

/// The settings that all requests of a client share.
public struct CurlSettings: Sendable {
    /// The value of `User-Agent`, unless a request sets that header.
    public var userAgent: String?
    /// The maximum number of open connections to one host; 0 for no limit. Further requests wait until their timeout.
    public var maxConnectionsPerHost = 0
    /// The number of idle connections that are retained for later requests.
    public var idleConnections = 64
    /// A PEM file of certificate authorities to trust, instead of those of the system.
    public var authorities: String?
    /// A filter that is called for each address before a connection to it is opened. It runs on the client's thread and
    /// must return quickly. It is not called again when a connection is reused.
    public var allowsAddress: @Sendable (SocketAddress) -> Bool = { _ in true }

    /// Creates settings with default values, which allow every address.
    public init() {}
}
