/// Why a job failed. The list is closed: consumers may switch over it.
public enum FailureCode: String, CaseIterable, Codable, Sendable {
    /// The message is no valid job.
    case invalidJob = "invalid_job"
    /// A kind of source or a scheme that is not served here.
    case unsupportedSource = "unsupported_source"
    /// The source's host has an address that may not be dialled.
    case blockedAddress = "blocked_address"
    /// 404, or no such file or object.
    case notFound = "not_found"
    /// 410.
    case gone
    /// 401, 403 and 451, or a file that may not be read.
    case forbidden
    /// Any other status that is not a success, or a broken HTTP exchange.
    case httpError = "http_error"
    /// The host's name has no address.
    case dnsError = "dns_error"
    /// No connection to the host.
    case connectError = "connect_error"
    /// The circuit breaker of the origin is open: too many of its last loads failed.
    case originUnavailable = "origin_unavailable"
    /// No trust in the host's certificate, or no agreement on TLS.
    case tlsError = "tls_error"
    /// A time limit passed: connecting, the whole transfer, or a stall.
    case timeout
    /// More redirects than allowed.
    case tooManyRedirects = "too_many_redirects"
    /// More bytes than allowed.
    case tooLarge = "too_large"
    /// More pixels than allowed, in the source or in the output.
    case tooManyPixels = "too_many_pixels"
    /// The bytes are no image of a format that is served here.
    case unsupportedFormat = "unsupported_format"
    /// The bytes begin like an image and do not hold what they promise.
    case corruptImage = "corrupt_image"
    /// The deadline passed.
    case expired
    /// A provider other than HTTP failed.
    case providerError = "provider_error"
    /// The job killed its workers.
    case poison
    /// A defect of Halcyon, or of the machine it runs on.
    case `internal`

    /// Whether the same job may succeed later, where nothing more is known.
    public var isRetryable: Bool {
        switch self {
        case .httpError, .dnsError, .connectError, .originUnavailable, .timeout, .providerError, .internal: true
        default: false
        }
    }
}

/// The failure of one job: a value that travels down the line like a result.
public struct Failure: Error, Hashable, Codable, Sendable, CustomStringConvertible {
    /// Which of the closed list.
    public var code: FailureCode
    /// What happened, for people; it says what to change where that is known. Of a long one the middle is left out: it quotes what a job or an
    /// origin gave, of which there may be a megabyte, and goes into events and headers.
    public var message: String { didSet { message = Self.shortened(message) } }
    /// Whether the same job may succeed later.
    public var isRetryable: Bool
    /// Which of the variants that were to be made it is about, counted from 0; nil when it is about none of them alone.
    public var variant: Int?
    /// Seconds until it is worth trying again: its origin said so, is left alone for so long, or the failure is remembered; nil when
    /// nothing is known of that.
    public var retryAfter: Double?
    /// Whether it is an answer in whose place nothing stale is to be used, unlike one of an origin in trouble.
    public var forbidsStaleUse = false
    private var storedCause = StoredCause()

    /// The error that led to it, for the log: events do not tell of it, and failures are equal whatever their causes. A
    /// failure that comes from a child process has it as a ``DescribedError``; one that another worker shared has none.
    public var cause: (any Error)? {
        get { storedCause.error }
        set { storedCause.error = newValue }
    }

    /// `isRetryable` defaults to what the code says.
    public init(
        _ code: FailureCode, _ message: String, isRetryable: Bool? = nil, variant: Int? = nil,
        retryAfter: Double? = nil, cause: (any Error)? = nil
    ) {
        self.code = code
        self.message = Self.shortened(message)
        self.isRetryable = isRetryable ?? code.isRetryable
        self.variant = variant
        self.retryAfter = retryAfter
        self.cause = cause
    }

    /// The failure of an error that nobody foresaw.
    public init(unforeseen error: any Error) {
        self.init(.internal, "an unforeseen error in the worker, whose log names its cause", cause: error)
    }

    /// The same failure, not worth trying again for at least so many seconds.
    public func notBefore(_ seconds: Double) -> Failure {
        var failure = self
        failure.retryAfter = max(seconds, retryAfter ?? 0)
        return failure
    }

    /// The same failure, as it is told so many seconds later.
    public func later(by seconds: Double) -> Failure {
        var failure = self
        failure.retryAfter = retryAfter.flatMap { $0 > seconds ? $0 - seconds : nil }
        return failure
    }

    /// The same failure, of what `place` names: a field, a processor, a source. It stands before the message.
    public func within(_ place: String) -> Failure {
        var failure = self
        failure.message = "\(place): \(message)"
        return failure
    }

    /// A text of at most 600 bytes and an ellipsis: its beginning and its end.
    public static func shortened(_ text: String) -> String {
        guard text.utf8.count > 600 else { return text }
        let head = text.unicodeScalars.prefix(bytes: 400)
        let tail = text.unicodeScalars.reversed().prefix(bytes: 200).reversed()
        return String(String.UnicodeScalarView(head)) + "…" + String(String.UnicodeScalarView(tail))
    }

    /// The same failure, about that variant of those to be made.
    public func of(variant index: Int) -> Failure {
        var failure = self
        failure.variant = index
        return failure
    }

    /// The failure in the words of a job: its message says which of the job's variants it is about, where there are several.
    ///
    /// - Parameters:
    ///   - places: where in the job each of the variants stands that were to be made.
    ///   - count: how many variants the job has.
    public func naming(_ places: [Int], of count: Int) -> Failure {
        guard let variant, count > 1, places.indices.contains(variant) else { return self }
        return of(variant: places[variant]).within("variants[\(places[variant])]")
    }

    /// For logs.
    public var description: String { "\(code.rawValue): \(message)" }
}

/// Keeps the cause of a failure out of comparisons, and out of its process in words alone.
private struct StoredCause: Hashable, Codable {
    var error: (any Error)?

    init() {}

    init(from decoder: any Decoder) throws { error = try DescribedError?(from: decoder) }

    func encode(to encoder: any Encoder) throws { try error.map(DescribedError.init).encode(to: encoder) }

    static func == (_: StoredCause, _: StoredCause) -> Bool { true }

    func hash(into _: inout Hasher) {}
}

extension Sequence<Unicode.Scalar> {
    /// The first characters that take no more than so many bytes in UTF-8.
    func prefix(bytes: Int) -> [Unicode.Scalar] {
        var room = bytes
        return Array(
            prefix { scalar in
                room -= UTF8.width(scalar)
                return room >= 0
            })
    }
}

extension Failure {
    /// What workers, or the children that tried it, died of or hung on so often that it is not begun again for now.
    public static let knownPoison = Failure(
        .poison, "workers died or hung over it; it is not tried again for some minutes, unless it is purged or reloaded"
    )
}

/// Failures as workers tell each other of them who wait for the same source or result.
extension Failure {
    /// Whether it would be the same for whoever asks: it is the source's or the picture's, and not the worker's own.
    public var isShared: Bool {
        switch code {
        case .internal, .poison, .expired, .invalidJob: false
        default: true
        }
    }

    /// One line: code, `final` or `retryable`, message. After `retryable` may stand in how many seconds, `retryable:12.5`, and
    /// after these that nothing stale is to be used: `retryable:12.5:fresh`, `retryable::fresh`. Last, `:variant` says that it is about the one
    /// that was to be made, and not about its source.
    public var shared: String {
        let fresh = forbidsStaleUse ? ":fresh" : ""
        let after = retryAfter.map { ":\($0)" } ?? (forbidsStaleUse ? ":" : "")
        let about = variant == nil ? "" : ":variant"
        return "\(code.rawValue) \(isRetryable ? "retryable\(after)\(fresh)" : "final")\(about) \(message)"
    }

    /// From such a line; nil when it is none.
    public init?(shared text: String) {
        let parts = text.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, let code = FailureCode(rawValue: String(parts[0])) else { return nil }
        let words = parts[1].split(separator: ":", omittingEmptySubsequences: false)
        let after = words.count > 1 ? Double(words[1]).flatMap { $0.isFinite && $0 >= 0 ? $0 : nil } : nil
        self.init(
            code, String(parts[2]), isRetryable: words.first == "retryable", variant: words.last == "variant" ? 0 : nil,
            retryAfter: after)
        forbidsStaleUse = words.dropFirst(2).first == "fresh"
    }
}

/// An error in words, for a log: its kind and its text. An error that comes from another process is known by these
/// alone.
public struct DescribedError: Error, Hashable, Codable, CustomStringConvertible {
    /// The type's name, and its code if it has one, such as `RedisError.timeout`.
    public let kind: String
    /// The error's own text, shortened; the causes of a ``Failure`` follow it in parentheses.
    public let text: String

    /// Describes any error; one that is described already stays as it is.
    public init(_ error: any Error) {
        switch error {
        case let described as DescribedError: self = described
        case let failure as Failure:
            kind = "Failure.\(failure.code.rawValue)"
            let cause = failure.cause.map { " (\(DescribedError($0)))" } ?? ""
            text = Failure.shortened(failure.message + cause)
        default:
            let code = Mirror(reflecting: error).children.first { $0.label == "code" }
            kind = "\(type(of: error))" + (code.map { ".\($0.value)" } ?? "")
            text = Failure.shortened("\(error)")
        }
    }

    /// The kind, then the text.
    public var description: String { "\(kind): \(text)" }
}
