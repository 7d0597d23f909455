import CivilTime
import Curl
import HalcyonModel

extension Failure {
    /// What a response means for a webhook that wants a status of the 200s; nil for one. Only 410 says that it will never want any.
    init?(webhookAnswered status: Int, retryAfter: String? = nil, date: String? = nil) {
        guard !(200...299).contains(status) else { return nil }
        self.init(status == 410 ? .gone : .httpError, "the webhook answered \(status)")
        self.retryAfter = retryAfter.flatMap {
            RetryAfter.seconds(of: $0, date: date, now: Timestamp.now.seconds)
        }
    }

    /// What a request without a whole response means for a webhook; nil when its answer was good and only too long. What somebody may mend
    /// is tried again; an address that may not be dialled is not.
    init?(webhook error: CurlError) {
        if error.code == .tooLarge, let status = error.status {
            self.init(webhookAnswered: status)
            return
        }
        let code: FailureCode =
            switch error.code {
            case .refusedAddress: .blockedAddress
            case .nameNotResolved: .dnsError
            case .cannotConnect: .connectError
            case .tls: .tlsError
            case .timeout: .timeout
            case .badURL, .badRequest, .unsupportedScheme: .invalidJob
            default: .httpError
            }
        self.init(
            code, error.message, isRetryable: code != .blockedAddress && code != .invalidJob,
            cause: CurlError(error.code, error.message))
    }
}
