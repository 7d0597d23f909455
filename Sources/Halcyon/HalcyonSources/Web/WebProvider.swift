import Curl
import Formats
import HalcyonModel
import Hashing

/// A provider of images from the web.
///
/// Redirects are followed here and not by libcurl, so that the scheme and host of every hop are checked. Each address
/// is checked when the connection is opened, whatever host name resolved to it.
struct WebProvider: SourceProvider {
    /// A URL and the request headers that the job adds.
    struct Reference: Sendable {
        fileprivate(set) var url: WebURL
        fileprivate(set) var headers: RequestHeaders

        init(_ url: WebURL, _ headers: RequestHeaders = RequestHeaders()) {
            self.url = url
            self.headers = headers
        }
    }

    private(set) var options: SourceOptions
    private let client: SSRFSafeClient

    init(_ options: SourceOptions) {
        self.options = options
        client = SSRFSafeClient(options.policy, userAgent: options.userAgent)
    }

    /// The size limit of a response, in bytes.
    var maximumBytes: Int {
        get { options.maximumBytes }
        set { options.maximumBytes = newValue }
    }

    func close() async { await client.close() }

    /// Fetches an image.
    /// - Throws: ``JobError``; `CancellationError`.
    func fetch(_ reference: Reference, ifNoneMatch known: Validators?) async throws -> FetchResponse {
        try await fetch(reference, ifNoneMatch: known, range: nil)
    }

    /// Fetches an image, or a part of a file.
    /// - Parameter range: The part; nil for everything. An origin without ranges answers with everything. The status of
    ///   a part is 206.
    /// - Throws: ``JobError``; `CancellationError`.
    func fetch(
        _ reference: Reference, ifNoneMatch known: Validators?, range: Range<Int>?
    ) async throws -> FetchResponse {
        let known = known ?? Validators()
        var (reference, redirects) = (reference, RedirectLimits())
        for _ in 0...options.maximumRedirects {
            let (resource, requestedAt) = (reference.resource, Timestamp.now.seconds)
            // Validators are valid only for the resource that sent them. If that resource was not recorded, it may be
            // the target of a redirect.
            let condition = known.resource == resource ? known : Validators()
            let response = try await download(reference.url, unlike: condition) { request in
                request.add(reference.headers)
                if let range { request.ask(for: range) }
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
            do throws(JobError) {
                try reference.move(to: WebURL(target))
            } catch {
                throw JobError(
                    .httpError, "invalid redirect target: \(error.message)", isRetryable: false,
                    cause: error)
            }
        }
        throw JobError(.tooManyRedirects, "more than \(options.maximumRedirects) redirects")
    }

    /// Adds the operator's credentials on hops to their origin only. An `Authorization` header of the job takes
    /// precedence.
    private func identify(_ request: inout HTTPRequest, to url: WebURL) {
        guard !url.hasUser, request.headers["Authorization"] == nil, !options.credentials.isEmpty else { return }
        request.headers["Authorization"] = options.credentials[Origin(url)]?.authorization
    }

    /// Converts a final response.
    /// - Parameters:
    ///   - fields: The response's header fields, and the fields about the redirects before it.
    ///   - isConditional: True if the request was conditional.
    private func answer(
        _ response: HTTPResponse, _ fields: HTTPFields, isConditional: Bool
    ) throws(JobError) -> FetchResponse {
        switch response.status {
        // 203 means that a proxy changed the response, such as the size of the image.
        // 206 is the answer to a request for a part.
        case 200, 203, 206:
            var loaded = LoadedSource(response)
            loaded.headers = fields
            return .loaded(loaded)
        case 304 where isConditional: return .notModified(.init(headers: fields))
        default: throw JobError(response)
        }
    }

    /// Performs one request within the limits. A redirect is returned as a response.
    /// - Parameters:
    ///   - isTrusted: True if the operator configured the host, so that its addresses may be private.
    ///   - begun: Bytes received earlier, if the request is for the rest.
    ///   - change: Sets the remaining fields of the request.
    /// - Throws: ``JobError`` `blocked_address` for a host that is denied; `CancellationError`.
    func transfer(
        _ url: WebURL, isTrusted: Bool = false, after begun: Int = 0, _ change: (inout HTTPRequest) -> Void
    ) async throws -> Transfer {
        guard !options.policy.denies(host: url.host) else {
            throw JobError(.blockedAddress, "the host \(url.host) is denied by sources.deny")
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
                try await client.execute(
                    request, to: url.host, isTrusted: isTrusted, progress: progress, admission: admission))
        } catch {
            // The client is closed when the worker shuts down. That is not an error of the source.
            if error.code == .cancelled || error.code == .closed { throw CancellationError() }
            return .broken(JobError(error, limit: options.maximumBytes), partial: error.partial)
        }
    }
}

extension WebProvider.Reference {
    /// The key that its validators are stored with. It is a digest because the URL may be a secret.
    fileprivate var resource: String { SHA256.hash(url.text).description }

    /// Follows a redirect. The job's headers are sent only to the origin that the job named. After a redirect to
    /// another origin they are dropped for all later hops (RFC 9110, section 15.4).
    fileprivate mutating func move(to target: WebURL) {
        if Origin(target) != Origin(url) { headers = RequestHeaders() }
        url = target
    }
}

extension HTTPRequest {
    /// Requests a part of a file (RFC 9110, section 14.2). A part of a compressed response could not be decoded.
    mutating func ask(for range: Range<Int>) {
        headers["Range"] = "bytes=\(range.lowerBound)-\(range.upperBound - 1)"
        acceptsCompression = false
    }

    fileprivate mutating func add(_ fields: RequestHeaders) {
        for field in fields.fields { headers[field.name] = field.value }
    }
}

/// The outcome of a transfer.
enum Transfer {
    /// A complete response.
    case whole(HTTPResponse)
    /// No response, or a partial one.
    case broken(JobError, partial: HTTPResponse?)

    /// The response, complete or partial.
    var response: HTTPResponse? {
        switch self {
        case .whole(let response): response
        case .broken(_, let partial): partial
        }
    }

    var isWhole: Bool { if case .whole = self { true } else { false } }

    /// Returns the complete response.
    /// - Throws: The error that interrupted the transfer.
    func get() throws(JobError) -> HTTPResponse {
        switch self {
        case .whole(let response): return response
        case .broken(let failure, _): throw failure
        }
    }
}

extension LoadedSource {
    /// Creates a source from a 200 or 203 response.
    init(_ response: HTTPResponse) {
        self.init(
            body: response.body, headers: response.headers, status: response.status,
            completedAt: Timestamp.now.seconds)
    }
}

/// Credentials for an origin (HTTP's Basic scheme, RFC 7617). The operator configures them, and all jobs share them.
public struct OriginCredentials: Hashable, Sendable {
    /// The only origin that receives the credentials.
    public let origin: Origin
    /// The value of `Authorization`.
    let authorization: String

    /// Parses a URL such as `https://user:password@img.example.org:8443`. User and password are percent-encoded.
    ///
    /// Returns nil if there is no user, if the user is not valid in the Basic scheme, or if the URL is more than an
    /// origin.
    public init?(_ text: String) {
        // The settings parser reports nil as an invalid URL.
        guard let url = try? WebURL(text), let (user, password) = url.userAndPassword, !user.isEmpty,
            !user.contains(UInt8(ascii: ":")), (user + password).allSatisfy({ $0 >= 0x20 && $0 != 0x7f })
        else { return nil }
        let path = url.canonical.utf8.drop { $0 != UInt8(ascii: "/") }.dropFirst(2).drop { $0 != UInt8(ascii: "/") }
        guard path.count == 1, !text.utf8.contains(UInt8(ascii: "#")) else { return nil }
        origin = Origin(url)
        authorization = "Basic \(Base64.encode(user + [UInt8(ascii: ":")] + password))"
    }
}
