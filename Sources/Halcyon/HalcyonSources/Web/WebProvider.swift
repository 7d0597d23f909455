import CivilTime
import Curl
import HalcyonModel

/// Loads images from the web.
///
/// Redirects are followed here and not by libcurl, so that each hop's scheme and host are judged like the first one's; each
/// address is judged when it is dialled, whatever name led to it.
struct WebProvider: SourceProvider {
    private var options: SourceOptions
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

    /// Bytes of the largest response.
    var maximumBytes: Int {
        get { options.maximumBytes }
        set { options.maximumBytes = newValue }
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

    /// One request, within the limits; a redirect is a response.
    /// - Parameters:
    ///   - isTrusted: whether the operator named the host, so that its addresses need not be public.
    ///   - change: adds what else is to be sent.
    func get(
        _ url: WebURL, isTrusted: Bool = false, _ change: (inout HTTPRequest) -> Void = { _ in }
    ) async throws -> HTTPResponse {
        guard !options.policy.denies(host: url.host) else {
            throw Failure(.blockedAddress, "the host \(url.host) is on the list sources.deny")
        }
        var request = HTTPRequest(.get, url.text)
        request.connectTimeout = options.connectTimeout
        request.timeout = options.timeout
        request.stall = HTTPRequest.Stall(bytesPerSecond: 64, for: options.stallTimeout)
        request.maxBytes = options.maximumBytes
        request.maxRedirects = 0
        change(&request)
        let client = isTrusted || options.policy.trusts(host: url.host) ? trustingClient : client
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
        return LoadedSource(response)
    }
}

extension HTTPResponse {
    /// The header fields as sources have them.
    var fields: HeaderFields { HeaderFields(headers.fields.map { HeaderFields.Field($0.name, $0.value) }) }
}

extension LoadedSource {
    /// What came with a 200.
    init(_ response: HTTPResponse) {
        self.init(
            body: response.body, headers: response.fields, status: response.status,
            completedAt: Timestamp.now.seconds)
    }
}
