import Threads

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
    /// The delays between attempts, unless the collector asks for longer ones.
    var backoff = Backoff(initial: .milliseconds(500), maximum: .seconds(5), jitter: 0.5)

    /// The defaults.
    public init() {}
}
