import CCurl
import Threads

/// An HTTP client: HTTP/1.1, and HTTP/2 over TLS where the peer has it, on connections that are kept and used again.
///
/// One thread serves all requests, however many there are; name look-ups run beside it. ``close()`` must be called in the end.
public final class CurlClient: Sendable {
    private let mailbox = Mailbox<Engine.Letter>()
    private let engine: Engine
    private let settings: CurlSettings

    /// A client, ready at once.
    public init(_ settings: CurlSettings = CurlSettings()) {
        self.settings = settings
        engine = Engine(mailbox, settings)
    }

    /// Makes a request and waits for the whole response.
    ///
    /// Cancelling the task ends the transfer at once; a peer that is in the middle of a response sees the connection cut.
    /// - Parameters:
    ///   - progress: called whenever bytes of the body have come, on the client's thread: keep it short.
    ///   - admission: how many bytes of the response's body may be held, and how to get more; nil for any number.
    /// - Throws: why there is no response. A status of 400 and above is a response.
    public nonisolated(nonsending) func perform(
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

    /// Ends every transfer and connection; transfers under way and later ones fail with ``CurlError/Code/closed``. Returns when
    /// the client's thread is gone. A second call does nothing.
    public func close() async {
        for case .start(let transfer) in mailbox.close() { transfer.answer(.failure(.closed)) }
        await engine.stop()
    }

    /// False when the client is closed.
    @discardableResult
    private func post(_ letter: Engine.Letter) -> Bool {
        switch mailbox.post(letter) {
        case .first:
            engine.wake()
            return true
        case .queued: return true
        case .closed: return false
        }
    }
}

/// libcurl as a whole.
public enum CurlLibrary {
    /// The version that runs, such as `7.88.1`.
    public static var version: String { String(cString: ccurl_version()) }
}

/// What all requests of a client share.
public struct CurlSettings: Sendable {
    /// Sent as `User-Agent`, unless a request sets that header.
    public var userAgent: String?
    /// How many connections to one host may be open at once; 0 for any number. Further requests wait, within their time limit.
    public var maxConnectionsPerHost = 0
    /// How many connections are kept for later requests.
    public var idleConnections = 64
    /// A PEM file of certificate authorities to trust in place of the system's.
    public var authorities: String?
    /// Asked for each address before it is dialled, on the client's thread: keep it short. A connection that is used again was
    /// asked for when it was dialled.
    public var allowsAddress: @Sendable (SocketAddress) -> Bool = { _ in true }

    /// The defaults: every address is allowed.
    public init() {}
}
