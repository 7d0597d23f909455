import Curl
import Formats
import HalcyonModel

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
