/// What the export of spans may cost, and how long it tries.
public struct ExportLimits: Sendable {
    /// How many spans wait to be sent, at most; what does not fit is dropped.
    public var queue = 8192
    /// How many go in one request, at most.
    public var batch = 512
    /// How long a span waits for others to go with.
    public var interval = Duration.seconds(1)
    /// For how long a batch is tried that the collector does not take now.
    public var patience = Duration.seconds(30)
    /// Up to how long it waits before the second attempt; it doubles with each, up to ``longestPause``.
    var base = Duration.milliseconds(500)
    /// The longest wait between two attempts that the collector did not ask for.
    var longestPause = Duration.seconds(5)

    /// The defaults.
    public init() {}

    /// How long to wait after so many failures in a row: at random, so that processes do not come back all at once, and never shorter than
    /// what the collector asked for.
    func pause(after failures: Int, retryAfter: Double?) -> Duration {
        let most = min(longestPause, base * (1 << min(20, failures - 1)))
        return max(most * Double.random(in: 0.5...1), .seconds(retryAfter ?? 0))
    }
}
