import CivilTime
import Curl
import HalcyonModel

/// Loads images from the web.
///
/// Redirects are followed here and not by libcurl, so that each hop's scheme and host are judged like the first one's; each
/// address is judged when it is dialled, whatever name led to it.
struct WebProvider: Sendable {
    private let options: SourceOptions
    /// Dials public and allowed addresses.
    private let client: CurlClient
    /// For hosts that are allowed by name: dials whatever is not denied.
    private let trustingClient: CurlClient

    init(_ options: SourceOptions) {
        self.options = options
        let policy = options.policy
        func client(allows: @escaping @Sendable (IPAddress) -> Bool) -> CurlClient {
            var settings = CurlSettings()
            settings.userAgent = options.userAgent
            settings.allowsAddress = { address in IPAddress(bytes: address.bytes).map(allows) ?? false }
            return CurlClient(settings)
        }
        self.client = client { policy.permits($0) }
        trustingClient = client { !policy.denies($0) }
    }

    func close() async {
        await client.close()
        await trustingClient.close()
    }

    /// - Throws: ``Failure``; `CancellationError`.
    func load(_ url: WebURL) async throws -> LoadedSource {
        var url = url
        for _ in 0...options.maximumRedirects {
            let response = try await get(url)
            guard let target = response.redirectURL else { return try source(from: response) }
            do throws(Failure) {
                url = try WebURL(target)
            } catch {
                throw Failure(.httpError, "redirected to what is no URL to load: \(error.message)", isRetryable: false)
            }
        }
        throw Failure(.tooManyRedirects, "more than \(options.maximumRedirects) redirects")
    }

    private func get(_ url: WebURL) async throws -> HTTPResponse {
        guard !options.policy.denies(host: url.host) else {
            throw Failure(.blockedAddress, "the host \(url.host) is on the list sources.deny")
        }
        var request = HTTPRequest(.get, url.text)
        request.connectTimeout = options.connectTimeout
        request.timeout = options.timeout
        request.stall = HTTPRequest.Stall(bytesPerSecond: 64, for: options.stallTimeout)
        request.maxBytes = options.maximumBytes
        request.maxRedirects = 0
        let client = options.policy.trusts(host: url.host) ? trustingClient : client
        do throws(CurlError) {
            return try await client.perform(request)
        } catch {
            // A client that is closed belongs to a worker that is leaving: the source is not to blame.
            if error.code == .cancelled || error.code == .closed { throw CancellationError() }
            throw Failure(error, limit: options.maximumBytes)
        }
    }

    private func source(from response: HTTPResponse) throws(Failure) -> LoadedSource {
        guard response.status == 200 else { throw Failure(status: response.status) }
        return LoadedSource(
            body: response.body,
            headers: HeaderFields(response.headers.fields.map { (name: $0.name, value: $0.value) }),
            status: response.status, etag: response.headers["ETag"], completedAt: Timestamp.now.seconds)
    }
}
