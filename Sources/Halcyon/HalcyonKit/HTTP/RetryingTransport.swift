import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Sends requests to a gateway, and retries those that fail in a transient way.
final class RetryingTransport: Sendable {
    typealias Response = HalcyonClient.Response

    let configuration: HalcyonClient.Configuration
    private let base: URL
    private let key: String?
    private let transport: any HalcyonClient.Transport

    init(
        _ transport: any HalcyonClient.Transport, to base: URL, key: String?, configuration: HalcyonClient.Configuration
    ) {
        (self.transport, self.base, self.key, self.configuration) = (transport, base, key, configuration)
    }

    /// A complete response.
    struct Answer: Sendable {
        let head: Response
        let body: Data
    }

    /// Sends a request until it succeeds, for up to ``HalcyonClient/Configuration/retryTimeout``.
    /// - Parameters:
    ///   - limit: The maximum size of the response, in bytes.
    ///   - completesWhenCancelled: True if an attempt continues when the task is cancelled, and only retries end.
    /// - Returns: The body of the response.
    /// - Throws: `HalcyonError`; `CancellationError`.
    func send(_ request: Request, limit: Int? = nil, completesWhenCancelled: Bool = false) async throws -> Data {
        try await answer(to: request, limit: limit, completesWhenCancelled: completesWhenCancelled).body
    }

    /// Like ``send(_:limit:completesWhenCancelled:)``, with the status and the header fields.
    /// - Parameter isRetried: True for the errors after which the request is sent again.
    func answer(
        to request: Request, limit: Int? = nil, completesWhenCancelled: Bool = false,
        isRetried: (HalcyonError) -> Bool = { $0.isTransient }
    ) async throws -> Answer {
        let limit = limit ?? configuration.maximumResponseBytes
        var backoff = Backoff(base: .milliseconds(200), maximum: configuration.maximumBackoff)
        var deadline: ContinuousClock.Instant?
        while true {
            try Task.checkCancellation()
            do {
                guard completesWhenCancelled else { return try await attempt(request, limit) }
                return try await Task { try await attempt(request, limit) }.value
            } catch let error as HalcyonError where isRetried(error) {
                let now = ContinuousClock.now
                let end = deadline ?? now + configuration.retryTimeout
                deadline = end
                let pause = backoff.next(atLeast: error.retryAfter ?? .zero)
                guard now + pause < end else { throw error }
                try await Task.sleep(for: pause)
            }
        }
    }

    private func attempt(_ request: Request, _ limit: Int) async throws -> Answer {
        do {
            let head = try await open(request, bufferLimit: limit)
            return Answer(head: head, body: try await Self.body(of: head, limit: limit))
        } catch { throw Self.clientError(error, limit: limit) }
    }

    /// Sends a request once, and follows a redirect if the request allows that.
    /// - Returns: A successful response, or 304 to a conditional request.
    /// - Throws: `HalcyonError.problem` for a response with another status; `HalcyonError.invalidResponse` for a
    ///   redirect to anything but an HTTP URL; the transport's errors.
    func open(_ request: Request, bufferLimit: Int) async throws -> Response {
        let response = try await transport.send(
            try request.urlRequest(to: base, key: key, configuration), kind: request.kind, bufferLimit: bufferLimit)
        if request.followsRedirect, response.status == 302 {
            return try await open(Request(address: try Self.target(of: response)), bufferLimit: bufferLimit)
        }
        let isCurrent = response.status == 304 && request.fields["If-None-Match"] != nil
        guard (200..<300).contains(response.status) || isCurrent else {
            let body = try await Self.body(of: response, limit: bufferLimit)
            throw HalcyonError.problem(
                HalcyonClient.ProblemDetails(
                    status: response.status, body: body, retryAfter: response.header("Retry-After")))
        }
        return response
    }

    /// The target of a redirect.
    private static func target(of response: Response) throws(HalcyonError) -> URL {
        let location = response.header("Location") ?? ""
        guard let url = URL(string: location), url.host != nil, ["http", "https"].contains(url.scheme) else {
            throw HalcyonError.invalidResponse("redirected to \"\(location)\", which is not an HTTP URL")
        }
        return url
    }

    private static func body(of response: Response, limit: Int) async throws -> Data {
        var body = Data()
        for try await part in response.body {
            guard body.count + part.count <= limit else { throw HalcyonError.tooLarge(limit: limit) }
            body += part
        }
        // A stream ends early, and without an error, when its task is cancelled.
        try Task.checkCancellation()
        return body
    }

    /// The error that the client throws for one of the transport.
    static func clientError(_ error: any Error, limit: Int) -> any Error {
        switch error {
        case is HalcyonError, is CancellationError: return error
        case is HTTPExchange.BufferOverflow: return HalcyonError.tooLarge(limit: limit)
        default:
            let error = error as NSError
            let cause = (error.userInfo[NSUnderlyingErrorKey] as? NSError) ?? error
            return HalcyonError.connectionFailed("\(cause.localizedDescription) (\(error.domain) \(error.code))")
        }
    }
}

/// A request to a gateway, or to another server.
struct Request: Sendable {
    var method = "GET"
    /// The path below `/v1/`. Each component is percent-encoded.
    var path: [String] = []
    var query: [(name: String, value: String)] = []
    var fields: [String: String] = [:]
    var body: Data?
    var kind = HalcyonClient.RequestKind.immediate
    /// True if one redirect to another server is followed, without the key.
    var followsRedirect = false
    /// The URL on another server, which does not receive the key; nil for the gateway.
    var address: URL?

    /// The request to ``address``, or to the gateway at `base`.
    func urlRequest(to base: URL, key: String?, _ configuration: HalcyonClient.Configuration) throws -> URLRequest {
        var request = URLRequest(url: try address ?? url(below: base))
        request.httpMethod = method
        request.httpBody = body
        let wait = kind == .longPoll ? configuration.longPollInterval : .zero
        request.timeoutInterval = (configuration.readTimeout + wait).seconds
        if let key, address == nil { request.setValue("Bearer \(key)", forHTTPHeaderField: "Authorization") }
        for (name, value) in fields { request.setValue(value, forHTTPHeaderField: name) }
        return request
    }

    private func url(below base: URL) throws(HalcyonError) -> URL {
        var text = base.absoluteString
        while text.hasSuffix("/") { text.removeLast() }
        text += "/v1/" + path.map(Self.encode).joined(separator: "/")
        if !query.isEmpty { text += "?" + queryText }
        guard let url = URL(string: text) else { throw HalcyonError.invalidResponse("\(text) is not a valid URL") }
        return url
    }

    /// The percent-encoded query.
    var queryText: String { query.map { "\($0.name)=\(Self.encode($0.value))" }.joined(separator: "&") }

    /// The unreserved characters of RFC 3986. Everything else is percent-encoded.
    private static let unreserved = CharacterSet(
        charactersIn: "-._~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")

    private static func encode(_ text: String) -> String {
        text.addingPercentEncoding(withAllowedCharacters: unreserved) ?? ""
    }
}

/// Random, exponentially growing pauses, so that the clients of a lost gateway do not all return at once.
struct Backoff {
    /// The shortest pause.
    var base: Duration
    let maximum: Duration
    private var failures = 0

    init(base: Duration, maximum: Duration) { (self.base, self.maximum) = (base, maximum) }

    /// Starts again with the shortest pause.
    mutating func reset() { failures = 0 }

    /// The next pause, plus a random part of up to a half.
    /// - Parameter least: The shortest pause that was asked for. It may exceed the maximum.
    mutating func next(atLeast least: Duration = .zero) -> Duration {
        let pause = min(base * (1 << min(failures, 16)), max(maximum, base))
        failures += 1
        return max(least, pause * Double.random(in: 1...1.5))
    }
}

extension Duration {
    /// The duration in seconds.
    var seconds: Double {
        let (seconds, attoseconds) = components
        return Double(seconds) + Double(attoseconds) * 1e-18
    }

    /// The duration in seconds, with three decimals and without an exponent.
    var secondsText: String {
        let (seconds, attoseconds) = components
        return "\(seconds)." + "\(1000 + attoseconds / 1_000_000_000_000_000)".dropFirst()
    }
}
