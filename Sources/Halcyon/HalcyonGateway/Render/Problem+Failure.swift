import HalcyonModel

extension Problem {
    /// Why an image could not be made.
    /// - Parameters:
    ///   - code: one of the closed list of failure codes; what a later version adds counts as `internal`.
    ///   - message: what the event says. It was written for whoever submits jobs.
    init(failed code: String, _ message: String) {
        let kind: Kind =
            switch FailureCode(rawValue: code) ?? .internal {
            case .invalidJob, .unsupportedSource: .invalidJob
            case .blockedAddress, .forbidden: .forbidden
            case .notFound: .notFound
            case .gone: .gone
            case .httpError, .dnsError, .connectError, .originUnavailable, .tlsError, .tooManyRedirects, .providerError:
                .badOrigin
            case .tooLarge, .tooManyPixels, .unsupportedFormat, .corruptImage, .poison: .unprocessable
            case .timeout, .expired: .timeout
            case .internal: .unavailable
            }
        self.init(kind, message, code: code)
    }
}
