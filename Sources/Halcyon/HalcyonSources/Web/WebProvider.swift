import Curl
import Digests
import Formats
import HalcyonModel

/// Loads images from the web.
///
/// Redirects are followed here and not by libcurl, so that each hop's scheme and host are judged like the first one's; each
/// address is judged when it is dialled, whatever name led to it.
struct WebProvider: SourceProvider {
    /// An address, and what the job adds to the requests for it.
    struct Reference: Sendable {
        fileprivate(set) var url: WebURL
        fileprivate(set) var headers: RequestHeaders

        init(_ url: WebURL, _ headers: RequestHeaders = RequestHeaders()) {
            self.url = url
            self.headers = headers
        }
    }

    private(set) var options: SourceOptions
    private let client: GuardedClient

    init(_ options: SourceOptions) {
        self.options = options
        client = GuardedClient(options.policy, userAgent: options.userAgent)
    }

    /// Bytes of the largest response.
    var maximumBytes: Int {
        get { options.maximumBytes }
        set { options.maximumBytes = newValue }
    }

    func close() async { await client.close() }

    /// - Throws: ``Failure``; `CancellationError`.
    func fetch(_ reference: Reference, ifNoneMatch known: Validators?) async throws -> FetchResponse {
        let known = known ?? Validators()
        var (reference, redirects) = (reference, RedirectLimits())
        for _ in 0...options.maximumRedirects {
            let (resource, requestedAt) = (reference.resource, Timestamp.now.seconds)
            // Validators say nothing to any other resource than the one that sent them. Where nobody wrote down which that
            // was, a redirect may have led to it.
            let condition = known.resource == resource ? known : Validators()
            let response = try await download(reference.url, unlike: condition) { request in
                request.add(reference.headers)
                identify(&request, to: reference.url)
            }
            guard response.status != 304, let target = response.redirectURL else {
                var fields = response.headers
                fields[RedirectLimits.field] = redirects.value(at: Timestamp.now.seconds)
                fields[Validators.resourceField] = resource
                return try answer(response, fields, isConditional: !condition.isEmpty)
            }
            redirects.add(
                status: response.status, headers: response.headers, requestedAt: requestedAt,
                receivedAt: Timestamp.now.seconds)
            do throws(Failure) {
                try reference.move(to: WebURL(target))
            } catch {
                throw Failure(
                    .httpError, "redirected to what is no URL to load: \(error.message)", isRetryable: false,
                    cause: error)
            }
        }
        throw Failure(.tooManyRedirects, "more than \(options.maximumRedirects) redirects")
    }

    /// The operator's credentials go to their origin alone, on each hop; what the job says itself is before them.
    private func identify(_ request: inout HTTPRequest, to url: WebURL) {
        guard !url.hasUser, request.headers["Authorization"] == nil, !options.credentials.isEmpty else { return }
        request.headers["Authorization"] = options.credentials[Origin(url)]?.authorization
    }

    /// - Parameters:
    ///   - fields: the response's, and what is to be known of the way to it.
    ///   - isConditional: whether the request asked for a change.
    private func answer(
        _ response: HTTPResponse, _ fields: HTTPFields, isConditional: Bool
    ) throws(Failure) -> FetchResponse {
        switch response.status {
        // 203 says that a proxy has changed something, such as the picture's size.
        case 200, 203:
            var loaded = LoadedSource(response)
            loaded.headers = fields
            return .loaded(loaded)
        case 304 where isConditional: return .notModified(.init(headers: fields))
        default: throw Failure(response)
        }
    }

    /// One request, within the limits; a redirect is a response.
    /// - Parameters:
    ///   - isTrusted: whether the operator named the host, so that its addresses need not be public.
    ///   - begun: bytes that are there already, where the request is for the rest.
    ///   - change: adds what else is to be sent.
    /// - Throws: ``Failure`` `blocked_address` for a host that is denied; `CancellationError`.
    func transfer(
        _ url: WebURL, isTrusted: Bool = false, after begun: Int = 0, _ change: (inout HTTPRequest) -> Void
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
        do throws(CurlError) {
            let progress = LoadMeter.current?.begin(after: begun)
            let admission = SourceMemory.current?.admission(begun)
            return .whole(
                try await client.perform(
                    request, to: url.host, isTrusted: isTrusted, progress: progress, admission: admission))
        } catch {
            // A client that is closed belongs to a worker that is leaving: the source is not to blame.
            if error.code == .cancelled || error.code == .closed { throw CancellationError() }
            return .broken(Failure(error, limit: options.maximumBytes), partial: error.partial)
        }
    }
}

extension WebProvider.Reference {
    /// What its validators are kept with: a digest, for the URL may be a secret.
    fileprivate var resource: String { SHA256.hash(url.text).description }

    /// Follows a redirect. What the job adds is for the origin that it named: another one learns nothing of it, be it a
    /// password or not (RFC 9110, section 15.4), nor does anybody later on the way.
    fileprivate mutating func move(to target: WebURL) {
        if Origin(target) != Origin(url) { headers = RequestHeaders() }
        url = target
    }
}

extension HTTPRequest {
    fileprivate mutating func add(_ fields: RequestHeaders) {
        for field in fields.fields { headers[field.name] = field.value }
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

extension LoadedSource {
    /// What came with a 200 or a 203.
    init(_ response: HTTPResponse) {
        self.init(
            body: response.body, headers: response.headers, status: response.status,
            completedAt: Timestamp.now.seconds)
    }
}

/// Who Halcyon is to an origin (HTTP's Basic scheme, RFC 7617). The operator's, and the same for all jobs.
public struct OriginCredentials: Hashable, Sendable {
    /// Whom they are for, and nobody else.
    public let origin: Origin
    /// The value of `Authorization`.
    let authorization: String

    /// From a URL such as `https://user:password@img.example.org:8443`, both percent-encoded.
    ///
    /// nil for what has no user, one that HTTP cannot say, or more than an origin.
    public init?(_ text: String) {
        // Settings say of what is nil that it is no such URL.
        guard let url = try? WebURL(text), let (user, password) = url.userAndPassword, !user.isEmpty,
            !user.contains(UInt8(ascii: ":")), (user + password).allSatisfy({ $0 >= 0x20 && $0 != 0x7f })
        else { return nil }
        let path = url.canonical.utf8.drop { $0 != UInt8(ascii: "/") }.dropFirst(2).drop { $0 != UInt8(ascii: "/") }
        guard path.count == 1, !text.utf8.contains(UInt8(ascii: "#")) else { return nil }
        origin = Origin(url)
        authorization = "Basic \(Base64.encode(user + [UInt8(ascii: ":")] + password))"
    }
}
