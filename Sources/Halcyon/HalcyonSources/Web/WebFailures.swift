import Curl
import Formats
import HalcyonModel

extension Failure {
    /// What a response without an image means for a job.
    init(_ response: HTTPResponse) {
        self.init(status: response.status)
        forbidsStaleUse = isRetryable && !response.allowsStaleUse
        guard isRetryable, let text = response.headers.first("Retry-After") else { return }
        retryAfter = RetryAfter.seconds(of: text, date: response.headers.first("Date"), now: Timestamp.now.seconds)
    }

    private init(status: Int) {
        let message = "the origin answered \(status)"
        switch status {
        case 304: self.init(.httpError, "\(message), and nobody had asked whether there is a change")
        case 404: self.init(.notFound, message)
        case 410: self.init(.gone, message)
        case 401, 403, 451: self.init(.forbidden, message)
        // Others of the 400s say that the request is wrong, and it will not be another one later.
        case 408, 425, 429: self.init(.httpError, message, isRetryable: true)
        default: self.init(.httpError, message, isRetryable: status >= 500)
        }
    }

    /// What a transfer without a response means for a job.
    init(_ error: CurlError, limit: Int) {
        let code: FailureCode
        var message = error.message
        switch error.code {
        case .badURL, .badRequest: code = .invalidJob
        case .unsupportedScheme: code = .unsupportedSource
        case .nameNotResolved: code = .dnsError
        case .cannotConnect: code = .connectError
        case .refusedAddress:
            code = .blockedAddress
            message += "; name it in sources.allow if jobs may reach it"
        case .tls: code = .tlsError
        case .timeout: code = .timeout
        case .tooLarge:
            self.init(tooLargeFor: limit)
            return
        case .tooManyRedirects: code = .tooManyRedirects
        case .interrupted, .protocolError: code = .httpError
        case .cancelled, .closed, .other: code = .internal
        }
        // What had come of a response is not kept for as long as the failure.
        self.init(code, message, isRetryable: error.isRetriable, cause: CurlError(error.code, error.message))
    }
}

extension HTTPResponse {
    /// Whether it is one of those in whose place what is stale will do (RFC 5861, section 4).
    var allowsStaleUse: Bool { [500, 502, 503, 504].contains(status) }
}
