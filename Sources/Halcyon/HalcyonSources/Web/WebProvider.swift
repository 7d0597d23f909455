import CivilTime
import Curl
import HalcyonModel

/// Loads images from the web.
///
/// Redirects are followed here and not by libcurl, so that each hop's scheme and host are judged like the first one's; each
/// address is judged when it is dialled, whatever name led to it.
struct WebProvider: SourceProvider {
    private(set) var options: SourceOptions
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
        guard case .loaded(let loaded) = try await load(url, unlike: Validators()) else {
            throw Failure(.httpError, "the origin answered 304, and nobody had asked whether there is a change")
        }
        return loaded
    }

    func load(_ url: WebURL, unlike known: Validators) async throws -> SourceAnswer {
        var url = url
        for _ in 0...options.maximumRedirects {
            let response = try await download(url, unlike: known)
            guard let target = response.redirectURL else { return try answer(response) }
            do throws(Failure) {
                url = try WebURL(target)
            } catch {
                throw Failure(.httpError, "redirected to what is no URL to load: \(error.message)", isRetryable: false)
            }
        }
        throw Failure(.tooManyRedirects, "more than \(options.maximumRedirects) redirects")
    }

    private func answer(_ response: HTTPResponse) throws(Failure) -> SourceAnswer {
        switch response.status {
        case 200: return .loaded(LoadedSource(response))
        case 304: return .notModified(.init(headers: response.fields))
        default: throw Failure(status: response.status)
        }
    }

    /// One request, within the limits; a redirect is a response.
    /// - Throws: as ``transfer(_:isTrusted:_:)``, and the failure that broke the transfer off.
    func get(
        _ url: WebURL, isTrusted: Bool = false, _ change: (inout HTTPRequest) -> Void = { _ in }
    ) async throws -> HTTPResponse {
        try await transfer(url, isTrusted: isTrusted, change).get()
    }

    /// One request, within the limits; a redirect is a response.
    /// - Parameters:
    ///   - isTrusted: whether the operator named the host, so that its addresses need not be public.
    ///   - change: adds what else is to be sent.
    /// - Throws: ``Failure`` `blocked_address` for a host that is denied; `CancellationError`.
    func transfer(
        _ url: WebURL, isTrusted: Bool = false, _ change: (inout HTTPRequest) -> Void
    ) async throws -> Transfer {
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
            return .whole(try await client.perform(request))
        } catch {
            // A client that is closed belongs to a worker that is leaving: the source is not to blame.
            if error.code == .cancelled || error.code == .closed { throw CancellationError() }
            return .broken(Failure(error, limit: options.maximumBytes), partial: error.partial)
        }
    }
}

/// How a transfer ended.
enum Transfer {
    /// With a response.
    case whole(HTTPResponse)
    /// Without one, or with a part of one.
    case broken(Failure, partial: HTTPResponse?)

    /// What came, all of it or a part.
    var response: HTTPResponse? {
        switch self {
        case .whole(let response): response
        case .broken(_, let partial): partial
        }
    }

    var isWhole: Bool { if case .whole = self { true } else { false } }

    /// The whole response, or why it is not whole.
    func get() throws(Failure) -> HTTPResponse {
        switch self {
        case .whole(let response): return response
        case .broken(let failure, _): throw failure
        }
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
