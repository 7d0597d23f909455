import Curl
import HalcyonModel

/// An HTTP client under an address policy: each address is judged when it is dialled, whatever name led to it.
public struct GuardedClient: Sendable {
    /// Which addresses may be dialled.
    public let policy: AddressPolicy
    /// Dials public and allowed addresses.
    private let client: CurlClient
    /// For hosts that are allowed by name: dials whatever is not denied.
    private let trustingClient: CurlClient

    /// - Parameter userAgent: how it names itself.
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

    /// Makes a request to a host, in lower case, that is not denied by name.
    /// - Parameters:
    ///   - isTrusted: whether the operator named the host, so that its addresses need not be public.
    ///   - progress: as for ``CurlClient/perform(_:progress:admission:)``, as is `admission`.
    /// - Throws: as ``CurlClient/perform(_:progress:admission:)``.
    public func perform(
        _ request: HTTPRequest, to host: String, isTrusted: Bool = false,
        progress: (@Sendable (HTTPProgress) -> Void)? = nil, admission: HTTPAdmission? = nil
    ) async throws(CurlError) -> HTTPResponse {
        try await (isTrusted || policy.trusts(host: host) ? trustingClient : client)
            .perform(request, progress: progress, admission: admission)
    }

    /// Ends all requests and connections.
    public func close() async {
        await client.close()
        await trustingClient.close()
    }
}
