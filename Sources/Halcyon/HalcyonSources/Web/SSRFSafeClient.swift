import Curl
import HalcyonModel

/// An HTTP client with an address policy. Each address is checked when the connection is opened, whatever host name
/// resolved to it.
public struct SSRFSafeClient: Sendable {
    /// The policy for the addresses that may be connected to.
    public let policy: AddressPolicy
    /// The client that connects to public and allowed addresses.
    private let client: CurlClient
    /// The client for hosts that are allowed by name. It connects to any address that is not denied.
    private let trustingClient: CurlClient

    /// Creates a client.
    /// - Parameter userAgent: The value of `User-Agent`.
    public init(_ policy: AddressPolicy, userAgent: String) {
        self.policy = policy
        func client(allows: @escaping @Sendable (IPAddress) -> Bool) -> CurlClient {
            var settings = CurlSettings()
            settings.userAgent = userAgent
            settings.allowsAddress = { address in IPAddress(bytes: address.bytes).map(allows) ?? false }
            return CurlClient(settings)
        }
        self.client = client { policy.permits($0) }
        trustingClient = client { !policy.denies($0) }
    }

    /// Sends a request to a host, in lower case, that is not denied by name.
    /// - Parameters:
    ///   - isTrusted: True if the operator configured the host, so that its addresses may be private.
    ///   - progress: As for ``CurlClient/execute(_:progress:admission:)``.
    ///   - admission: As for ``CurlClient/execute(_:progress:admission:)``.
    /// - Throws: The errors of ``CurlClient/execute(_:progress:admission:)``.
    public func execute(
        _ request: HTTPRequest, to host: String, isTrusted: Bool = false,
        progress: (@Sendable (HTTPProgress) -> Void)? = nil, admission: HTTPAdmission? = nil
    ) async throws(CurlError) -> HTTPResponse {
        try await (isTrusted || policy.trusts(host: host) ? trustingClient : client)
            .execute(request, progress: progress, admission: admission)
    }

    /// Ends all requests and connections.
    public func close() async {
        await client.close()
        await trustingClient.close()
    }
}

extension WebProvider {
    /// Uploads bytes to a URL with PUT (RFC 9110, section 9.3.4). Any 2xx response means success. Redirects are not
    /// followed, because a signed URL is not valid elsewhere.
    /// - Throws: ``JobError`` that names only the host, because the URL may be a secret; `CancellationError`.
    func put(_ body: [UInt8], mediaType: String, at url: WebURL) async throws {
        do {
            let response = try await transfer(url) { request in
                request.method = .put
                request.headers = ["Content-Type": mediaType]
                request.body = body
                // The server may process the upload until the timeout, so there is no stall limit.
                request.stall = nil
            }.get()
            guard !(200...299).contains(response.status) else { return }
            var failure = JobError(response)
            (failure.code, failure.message) = (.httpError, "it answered \(response.status)")
            throw failure
        } catch let failure as JobError {
            throw failure.within("putting the result at \(url.host)")
        }
    }
}
