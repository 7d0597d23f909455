import JSON

/// What came of sending spans.
public enum ExportReply: Hashable, Sendable {
    /// They were taken, but for so many; why these were not.
    case taken(rejected: Int, reason: String)
    /// They are not taken, now or later.
    case refused(String)
    /// They may be taken later, where it is known after so many seconds.
    case unavailable(String, retryAfter: Double?)

    /// An answer over HTTP, as OTLP reads it: 429, 502, 503 and 504 may pass, and nothing else does.
    /// - Parameters:
    ///   - retryAfter: seconds, as the header `Retry-After` has them; nil without one.
    ///   - body: what the collector said of it; it need not say anything.
    public init(status: Int, retryAfter: Double?, body: [UInt8]) {
        switch status {
        case 200..<300: self = Self.partial(body)
        case 429, 502, 503, 504: self = .unavailable("status \(status)", retryAfter: retryAfter)
        default: self = .refused("status \(status)")
        }
    }

    /// What `ExportTraceServiceResponse` says of spans that were left out. An answer that is none, as proxies give it, says nothing.
    private static func partial(_ body: [UInt8]) -> ExportReply {
        // An answer that is not JSON comes from a proxy.
        guard let answer = try? JSON.parse(body, maximumSize: 1 << 20), answer.kind == .object,
            let partial = answer.member("partialSuccess"), partial.kind == .object
        else { return .taken(rejected: 0, reason: "") }
        let count = partial.member("rejectedSpans")
        // A string in the mapping, and a number with some who write it.
        let rejected = count?.asString.flatMap { Int($0) } ?? count?.asInteger.flatMap { Int($0) } ?? 0
        return .taken(rejected: max(0, rejected), reason: partial.member("errorMessage")?.asString ?? "")
    }
}
