/// The reason for the failure of a job.
public struct FailureCode: RawRepresentable, Sendable, Hashable, Codable {
    /// The code in events.
    public let rawValue: String
    /// Creates a code that has no static member here.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// The job is invalid, was not done before its deadline, or crashed its workers.
    public static let invalidJob = Self(rawValue: "invalid_job"), expired = Self(rawValue: "expired"),
        poison = Self(rawValue: "poison")
    /// The source is not allowed, or does not exist.
    public static let unsupportedSource = Self(rawValue: "unsupported_source"),
        blockedAddress = Self(rawValue: "blocked_address"), notFound = Self(rawValue: "not_found"),
        gone = Self(rawValue: "gone"), forbidden = Self(rawValue: "forbidden")
    /// The source could not be loaded.
    public static let httpError = Self(rawValue: "http_error"), dnsError = Self(rawValue: "dns_error"),
        connectError = Self(rawValue: "connect_error"), originUnavailable = Self(rawValue: "origin_unavailable"),
        tlsError = Self(rawValue: "tls_error"), timeout = Self(rawValue: "timeout"),
        tooManyRedirects = Self(rawValue: "too_many_redirects"), providerError = Self(rawValue: "provider_error")
    /// The image cannot be processed.
    public static let tooLarge = Self(rawValue: "too_large"), tooManyPixels = Self(rawValue: "too_many_pixels"),
        unsupportedFormat = Self(rawValue: "unsupported_format"), corruptImage = Self(rawValue: "corrupt_image")
    /// Halcyon itself has failed.
    public static let `internal` = Self(rawValue: "internal")
}
