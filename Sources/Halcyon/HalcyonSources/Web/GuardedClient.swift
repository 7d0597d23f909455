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

extension WebProvider {
    /// Puts bytes at a URL (RFC 9110, section 9.3.4); any answer of the 200s says that they are there. Redirects are not followed: what a
    /// URL was signed for holds nowhere else.
    /// - Throws: ``Failure`` that names the host and nothing else of the URL, which may be a secret; `CancellationError`.
    func put(_ body: [UInt8], mediaType: String, at url: WebURL) async throws {
        do {
            let response = try await transfer(url) { request in
                request.method = .put
                request.headers = ["Content-Type": mediaType]
                request.body = body
                // Who has taken it may think about it for as long as there is time.
                request.stall = nil
            }.get()
            guard !(200...299).contains(response.status) else { return }
            var failure = Failure(response)
            (failure.code, failure.message) = (.httpError, "it answered \(response.status)")
            throw failure
        } catch let failure as Failure {
            throw failure.within("putting the result at \(url.host)")
        }
    }
}
