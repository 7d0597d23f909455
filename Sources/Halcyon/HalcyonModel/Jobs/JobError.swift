/// The reason for the failure of a job. The list is closed, so consumers may switch over it.
public enum JobErrorCode: String, CaseIterable, Codable, Sendable {
    /// The message is not a valid job.
    case invalidJob = "invalid_job"
    /// The kind of source or the URL scheme is not supported.
    case unsupportedSource = "unsupported_source"
    /// The address of the source's host is blocked.
    case blockedAddress = "blocked_address"
    /// The response was 404, or the file or object does not exist.
    case notFound = "not_found"
    /// The response was 410.
    case gone
    /// The response was 401, 403 or 451, or the file may not be read.
    case forbidden
    /// The response had another unsuccessful status, or the HTTP exchange failed.
    case httpError = "http_error"
    /// The host name could not be resolved.
    case dnsError = "dns_error"
    /// The connection to the host failed.
    case connectError = "connect_error"
    /// The origin's circuit breaker is open, because too many recent loads failed.
    case originUnavailable = "origin_unavailable"
    /// The host's certificate is not trusted, or the TLS handshake failed.
    case tlsError = "tls_error"
    /// Connecting or the transfer timed out, or the transfer stalled.
    case timeout
    /// The number of redirects exceeded the limit.
    case tooManyRedirects = "too_many_redirects"
    /// The size in bytes of the source exceeded the limit, or that of the output exceeds the job's `maximumBytes`.
    case tooLarge = "too_large"
    /// The number of pixels of the source or the output exceeded the limit.
    case tooManyPixels = "too_many_pixels"
    /// The bytes are not an image in a supported format.
    case unsupportedFormat = "unsupported_format"
    /// The image is damaged.
    case corruptImage = "corrupt_image"
    /// The job's deadline passed.
    case expired
    /// A provider other than HTTP failed.
    case providerError = "provider_error"
    /// The job is a poison job: it repeatedly crashed workers.
    case poison
    /// An internal error of Halcyon or of its machine.
    case `internal`

    /// True if errors with this code are retryable by default.
    public var isRetryable: Bool {
        switch self {
        case .httpError, .dnsError, .connectError, .originUnavailable, .timeout, .providerError, .internal: true
        default: false
        }
    }

    /// True if another source may succeed where one has failed with this code.
    public var isOfSource: Bool {
        switch self {
        case .invalidJob, .expired, .internal: false
        default: true
        }
    }
}

/// The failure of a job.
public struct JobError: Error, Hashable, Codable, Sendable, CustomStringConvertible {
    /// The error code.
    public var code: JobErrorCode
    /// A human-readable description of the failure and, where possible, its remedy. The middle of long messages is
    /// removed, because they may quote large input and are sent in events and headers.
    public var message: String { didSet { message = Self.shortened(message) } }
    /// True if a retry of the job may succeed.
    public var isRetryable: Bool
    /// The index of the affected variant among the rendered variants, from 0; nil if the failure is not specific to a
    /// variant.
    public var variant: Int?
    /// The minimum delay before a retry, in seconds: from the origin's Retry-After, an open circuit breaker or the
    /// negative cache; nil if unknown. Custom providers may set any number: it is limited to 0 to 2^31, and NaN becomes
    /// nil.
    public var retryAfter: Double? { didSet { retryAfter = Self.limited(retryAfter) } }
    /// True if a stale response must not be used instead, because the origin gave a definite answer.
    public var forbidsStaleUse = false
    private var storedCause = StoredCause()

    /// The underlying error, for logs only. It is not part of events or comparisons. Failures from a child process
    /// contain it as a ``DescribedError``; failures shared by another worker have none.
    public var cause: (any Error)? {
        get { storedCause.error }
        set { storedCause.error = newValue }
    }

    /// Creates a failure. `isRetryable` defaults to ``JobErrorCode/isRetryable`` of the code.
    public init(
        _ code: JobErrorCode, _ message: String, isRetryable: Bool? = nil, variant: Int? = nil,
        retryAfter: Double? = nil, cause: (any Error)? = nil
    ) {
        self.code = code
        self.message = Self.shortened(message)
        self.isRetryable = isRetryable ?? code.isRetryable
        self.variant = variant
        self.retryAfter = Self.limited(retryAfter)
        self.cause = cause
    }

    /// Creates an internal error from an unexpected error.
    public init(unforeseen error: any Error) {
        self.init(.internal, "unexpected error in the worker; its log contains the cause", cause: error)
    }

    /// Returns the failure with a retry delay of at least this many seconds.
    public func retryAfter(atLeast seconds: Double) -> JobError {
        var failure = self
        failure.retryAfter = max(seconds, retryAfter ?? 0)
        return failure
    }

    /// Returns the failure with its retry delay reduced by the given seconds that have passed.
    public func delayed(by seconds: Double) -> JobError {
        var failure = self
        failure.retryAfter = retryAfter.flatMap { $0 > seconds ? $0 - seconds : nil }
        return failure
    }

    /// Returns the failure with its message prefixed by `path`, which names a field, a processor or a source.
    public func within(_ path: String) -> JobError {
        var failure = self
        failure.message = "\(path): \(message)"
        return failure
    }

    /// Returns the beginning and the end of a long text, at most 600 bytes, joined by an ellipsis.
    public static func shortened(_ text: String) -> String {
        guard text.utf8.count > 600 else { return text }
        let head = text.unicodeScalars.prefix(bytes: 400)
        let tail = text.unicodeScalars.reversed().prefix(bytes: 200).reversed()
        return String(String.UnicodeScalarView(head)) + "…" + String(String.UnicodeScalarView(tail))
    }

    /// Returns a delay that can be converted to a duration or an integer; nil for NaN.
    private static func limited(_ seconds: Double?) -> Double? {
        seconds.flatMap { $0.isNaN ? nil : min(max(0, $0), Double(DeltaSeconds.greatest)) }
    }

    /// Returns the failure with this index of the affected variant.
    public func forVariant(_ index: Int) -> JobError {
        var failure = self
        failure.variant = index
        return failure
    }

    /// Returns the failure with the variant's index in the job, and the message prefixed by it if the job has several
    /// variants.
    ///
    /// - Parameters:
    ///   - variantIndices: The index in the job of each rendered variant.
    ///   - count: The number of variants of the job.
    public func qualified(_ variantIndices: [Int], of count: Int) -> JobError {
        guard let variant, count > 1, variantIndices.indices.contains(variant) else { return self }
        return forVariant(variantIndices[variant]).within("variants[\(variantIndices[variant])]")
    }

    /// The code and the message.
    public var description: String { "\(code.rawValue): \(message)" }
}

/// The cause of a failure: ignored in comparisons, and encoded as a ``DescribedError``.
private struct StoredCause: Hashable, Codable {
    var error: (any Error)?

    init() {}

    init(from decoder: any Decoder) throws { error = try DescribedError?(from: decoder) }

    func encode(to encoder: any Encoder) throws { try error.map(DescribedError.init).encode(to: encoder) }

    static func == (_: StoredCause, _: StoredCause) -> Bool { true }

    func hash(into _: inout Hasher) {}
}

extension Sequence<Unicode.Scalar> {
    /// Returns the longest prefix of at most this many bytes in UTF-8.
    func prefix(bytes: Int) -> [Unicode.Scalar] {
        var room = bytes
        return Array(
            prefix { scalar in
                room -= UTF8.width(scalar)
                return room >= 0
            })
    }
}

extension JobError {
    /// The failure of work that repeatedly crashed or hung workers or render processes, and is currently not retried.
    public static let knownPoison = JobError(
        .poison, "repeatedly crashed or hung workers; not retried for some minutes unless purged or reloaded")
}

/// The representation of failures that workers share with workers waiting for the same source or result.
extension JobError {
    /// True if the failure applies to all requesters, because the source or the picture caused it and not the worker.
    public var isShared: Bool {
        switch code {
        case .internal, .poison, .expired, .invalidJob: false
        default: true
        }
    }

    /// The failure as one line: code, `final` or `retryable`, message. `retryable` may be followed by the delay in
    /// seconds (`retryable:12.5`) and by `fresh` if stale data must not be used (`retryable:12.5:fresh`,
    /// `retryable::fresh`). The suffix `:variant` means that the failure is specific to the variant, not to its source.
    public var shared: String {
        let fresh = forbidsStaleUse ? ":fresh" : ""
        let after = retryAfter.map { ":\($0)" } ?? (forbidsStaleUse ? ":" : "")
        let about = variant == nil ? "" : ":variant"
        return "\(code.rawValue) \(isRetryable ? "retryable\(after)\(fresh)" : "final")\(about) \(message)"
    }

    /// Parses a line in the format of ``shared``; returns nil if it is malformed.
    public init?(shared text: String) {
        let parts = text.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, let code = JobErrorCode(rawValue: String(parts[0])) else { return nil }
        let words = parts[1].split(separator: ":", omittingEmptySubsequences: false)
        let after = words.count > 1 ? Double(words[1]).flatMap { $0.isFinite && $0 >= 0 ? $0 : nil } : nil
        self.init(
            code, String(parts[2]), isRetryable: words.first == "retryable", variant: words.last == "variant" ? 0 : nil,
            retryAfter: after)
        forbidsStaleUse = words.dropFirst(2).first == "fresh"
    }
}

/// The textual description of an error for logs: its kind and its text. Errors from other processes are available only
/// in this form.
public struct DescribedError: Error, Hashable, Codable, CustomStringConvertible {
    /// The name of the type, with the error code if it has one, such as `RedisError.timeout`.
    public let kind: String
    /// The shortened text of the error. The causes of a ``JobError`` follow in parentheses.
    public let text: String

    /// Describes an error. A ``DescribedError`` is copied unchanged.
    public init(_ error: any Error) {
        switch error {
        case let described as DescribedError: self = described
        case let failure as JobError:
            kind = "Failure.\(failure.code.rawValue)"
            let cause = failure.cause.map { " (\(DescribedError($0)))" } ?? ""
            text = JobError.shortened(failure.message + cause)
        default:
            let code = Mirror(reflecting: error).children.first { $0.label == "code" }
            kind = "\(type(of: error))" + (code.map { ".\($0.value)" } ?? "")
            text = JobError.shortened("\(error)")
        }
    }

    /// The kind and the text.
    public var description: String { "\(kind): \(text)" }
}
