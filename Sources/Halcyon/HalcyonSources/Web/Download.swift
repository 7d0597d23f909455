import Concurrency
import Curl
import Formats
import HalcyonModel

extension WebProvider {
    /// Downloads a complete response. If the transfer is interrupted and the origin supports ranges, it is resumed. The
    /// timeout and the byte limit of one transfer apply to the whole download.
    ///
    /// - Parameters:
    ///   - isTrusted: True if the operator configured the host, so that its addresses may be private.
    ///   - known: The validators of the bytes that the caller has, for a conditional request.
    ///   - condition: The condition header of range requests.
    ///   - change: Adds headers and credentials to each request.
    /// - Throws: ``JobError``; `CancellationError`.
    func download(
        _ url: WebURL, isTrusted: Bool = false, unlike known: Validators,
        continuing condition: RangeResume.Condition = .ifRange, _ change: (inout HTTPRequest) -> Void
    ) async throws -> HTTPResponse {
        let start = ContinuousClock.now
        var limit = maximumBytes
        func ask(for begun: RangeResume?) async throws -> Transfer {
            try await transfer(url, isTrusted: isTrusted, after: begun?.response.body.count ?? 0) { request in
                change(&request)
                limit = request.maxBytes
                request.timeout = options.timeout - start.duration(to: .now)
                guard let begun else {
                    request.headers["If-None-Match"] = known.etag
                    request.headers["If-Modified-Since"] = known.lastModified
                    return
                }
                request.ask(forTheRestOf: begun)
            }
        }

        var end = try await ask(for: nil)
        guard case .broken(var failure, let partial) = end else { return try end.get() }
        guard var begun = partial.flatMap({ RangeResume($0, condition) }) else { throw failure }
        for _ in 0..<options.resumptions {
            end = try await ask(for: begun)
            if case .broken(let again, _) = end { failure = again }
            guard let rest = end.response else { throw failure }
            switch begun.joined(with: rest, isWhole: end.isWhole, limit: limit) {
            case .whole(let response), .anew(let response): return response
            case .more(let longer): begun = longer
            case .changed:
                end = try await ask(for: nil)
                guard case .broken(let again, let partial) = end else { return try end.get() }
                failure = again
                guard let anew = partial.flatMap({ RangeResume($0, condition) }) else { throw failure }
                begun = anew
            case .tooLarge: throw JobError(tooLargeFor: limit)
            case .useless: throw failure
            }
        }
        throw failure
    }
}

extension HTTPRequest {
    fileprivate mutating func ask(forTheRestOf resumption: RangeResume) {
        for field in resumption.fields { headers[field.name] = field.value }
        // A range of a compressed response cannot be decoded on its own.
        acceptsCompression = false
    }
}

/// The fetches in flight in this process, by key, with their progress.
final class LoadMeters: Sendable {
    private let meters = Lock<[FetchKey: LoadMeter]>([:])

    /// Measures a fetch. After all its waiters have left, the next fetch of the key may start before this one has
    /// ended.
    func measure<Value>(_ key: FetchKey, _ body: () async throws -> Value) async throws -> Value {
        let meter = LoadMeter()
        meters.withLock { $0[key] = meter }
        defer { meters.withLock { if $0[key] === meter { $0[key] = nil } } }
        return try await LoadMeter.$current.withValue(meter, operation: body)
    }

    /// The progress of a fetch; nil if it is not in flight.
    func progress(of key: FetchKey) -> LoadProgress? { meters.withLock { $0[key] }?.progress }
}

/// A counter of the bytes that one fetch has received so far.
///
/// It is a task-local value, so that it reaches the transfer without a parameter in every provider.
final class LoadMeter: Sendable {
    /// The meter of the load that the current task performs.
    @TaskLocal static var current: LoadMeter?

    private let state = Lock<LoadProgress?>(nil)

    /// The progress; nil before the first request.
    var progress: LoadProgress? { state.withLock { $0 } }

    /// Starts counting the response to one request.
    /// - Parameter begun: Bytes received earlier, if the request is for the rest.
    /// - Returns: A callback for the transfer.
    func begin(after begun: Int) -> @Sendable (HTTPProgress) -> Void {
        state.withLock { $0 = $0 ?? LoadProgress(received: 0) }
        return { [state] news in
            // The body of a redirect or an error is no part of the source.
            guard [200, 203, 206].contains(news.status) else { return }
            // A server may answer a range request with the whole body.
            let begun = news.status == 206 ? begun : 0
            state.withLock {
                $0 = LoadProgress(received: begun + news.received, total: news.expected.map { begun + $0 })
            }
        }
    }
}

extension JobError {
    /// Creates the error for a response that is not a success.
    init(_ response: HTTPResponse) {
        self.init(status: response.status)
        forbidsStaleUse = isRetryable && !response.allowsStaleUse
        guard isRetryable, let text = response.headers.first("Retry-After") else { return }
        retryAfter = RetryAfter.seconds(of: text, date: response.headers.first("Date"), now: Timestamp.now.seconds)
    }

    private init(status: Int) {
        let message = "the origin answered \(status)"
        switch status {
        case 304: self.init(.httpError, "\(message) (Not Modified) to an unconditional request")
        case 404: self.init(.notFound, message)
        case 410: self.init(.gone, message)
        case 401, 403, 451: self.init(.forbidden, message)
        // Other 4xx statuses mean that the request is invalid, so a retry would fail too.
        case 408, 425, 429: self.init(.httpError, message, isRetryable: true)
        default: self.init(.httpError, message, isRetryable: status >= 500)
        }
    }

    /// Creates the error for a transfer without a response.
    init(_ error: CurlError, limit: Int) {
        let code: JobErrorCode
        var message = error.message
        switch error.code {
        case .badURL, .badRequest: code = .invalidJob
        case .unsupportedScheme: code = .unsupportedSource
        case .nameNotResolved: code = .dnsError
        case .cannotConnect: code = .connectError
        case .refusedAddress:
            code = .blockedAddress
            message += "; add it to sources.allow if jobs may access it"
        case .tls: code = .tlsError
        case .timeout: code = .timeout
        case .tooLarge:
            self.init(tooLargeFor: limit)
            return
        case .tooManyRedirects: code = .tooManyRedirects
        case .interrupted, .protocolError: code = .httpError
        case .cancelled, .closed, .other: code = .internal
        }
        // The cause must not retain the partial response for the lifetime of the error.
        self.init(code, message, isRetryable: error.isRetriable, cause: CurlError(error.code, error.message))
    }
}

extension HTTPResponse {
    /// True if a stale response may be used instead of this one (RFC 5861, section 4).
    var allowsStaleUse: Bool { [500, 502, 503, 504].contains(status) }
}
