/// Why a job failed: a closed list.
public enum FailureCode: String, Sendable, Codable, CaseIterable {
    /// As the schema of events has it.
    case invalidJob = "invalid_job"
    case unsupportedSource = "unsupported_source"
    case blockedAddress = "blocked_address"
    case notFound = "not_found"
    case gone, forbidden
    case httpError = "http_error"
    case dnsError = "dns_error"
    case connectError = "connect_error"
    case originUnavailable = "origin_unavailable"
    case tlsError = "tls_error"
    case timeout
    case tooManyRedirects = "too_many_redirects"
    case tooLarge = "too_large"
    case tooManyPixels = "too_many_pixels"
    case unsupportedFormat = "unsupported_format"
    case corruptImage = "corrupt_image"
    case expired
    case providerError = "provider_error"
    case poison, `internal`
}
