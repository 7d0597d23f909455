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
