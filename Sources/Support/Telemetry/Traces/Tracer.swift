import Formats

/// A tracer: decides which work is sampled, and records its spans.
public struct Tracer: Sendable {
    /// The sampling ratio for work without a sampling decision, 0 to 1.
    private let ratio: Double
    private let exporter: SpanExporter

    /// Creates a tracer. The ratio applies to new traces; other work follows the decision of its parent.
    public init(ratio: Double, _ exporter: SpanExporter) {
        self.ratio = ratio
        self.exporter = exporter
    }

    /// Begins a span; nil if it is not sampled.
    /// - Parameter parent: The context of the parent, whose sampling decision applies.
    public func begin(under parent: TraceContext?) -> TraceContext? {
        let spanContext = spanContext(under: parent)
        return spanContext.isSampled ? spanContext : nil
    }

    /// Begins a span for work that propagates the sampling decision. If the work is not sampled, returns the parent's
    /// context, or an unsampled one.
    public func spanContext(under parent: TraceContext?) -> TraceContext {
        guard let parent else { return TraceContext(recorded: ratio) }
        return parent.isSampled ? parent.child() : parent
    }

    /// Records spans that belong together.
    public func record(_ spans: [Span]) { exporter.add(spans) }
}

/// A clock that converts the instants with which spans are measured to civil time. Create one for work that belongs
/// together. Its spans then stay consistent even if the machine's clock is set meanwhile.
public struct TraceClock: Sendable {
    private let instant: ContinuousClock.Instant
    /// The creation time in nanoseconds since 1970.
    public let start: Int64

    /// Reads both clocks.
    public init() {
        instant = .now
        start = Timestamp.nanoseconds
    }

    /// Returns the time of an instant in nanoseconds since 1970.
    public func nanoseconds(of moment: ContinuousClock.Instant) -> Int64 {
        let (seconds, attoseconds) = instant.duration(to: moment).components
        return start + seconds * 1_000_000_000 + attoseconds / 1_000_000_000
    }
}
