import Formats

/// Says what is recorded of what the process does, and takes it.
public struct Tracer: Sendable {
    /// Which part is recorded of the work that nobody has decided about, 0 to 1.
    private let ratio: Double
    private let exporter: SpanExporter

    /// Records by itself that part of what begins a trace; of the rest what is recorded where it comes from.
    public init(ratio: Double, _ exporter: SpanExporter) {
        self.ratio = ratio
        self.exporter = exporter
    }

    /// The place of work that begins; nil when nothing of it is recorded.
    /// - Parameter parent: what caused it. Whether it is recorded decides.
    public func begin(under parent: TraceContext?) -> TraceContext? {
        let place = place(under: parent)
        return place.isSampled ? place : nil
    }

    /// The same, for work that hands on what was decided: where nothing is recorded, the place of what caused it, or one that is not recorded.
    public func place(under parent: TraceContext?) -> TraceContext {
        guard let parent else { return TraceContext(recorded: ratio) }
        return parent.isSampled ? parent.child() : parent
    }

    /// Takes spans that belong together.
    public func record(_ spans: [Span]) { exporter.add(spans) }
}

/// Civil time for moments of the clock that spans are measured with. Read once for work that belongs together, so that its spans stand to
/// each other as they were measured, also when the clock of the machine is set meanwhile.
public struct TraceClock: Sendable {
    private let instant: ContinuousClock.Instant
    /// What time it was then, in nanoseconds since 1970.
    public let start: Int64

    /// Reads both clocks.
    public init() {
        instant = .now
        start = Timestamp.nanoseconds
    }

    /// In nanoseconds since 1970.
    public func nanoseconds(of moment: ContinuousClock.Instant) -> Int64 {
        let (seconds, attoseconds) = instant.duration(to: moment).components
        return start + seconds * 1_000_000_000 + attoseconds / 1_000_000_000
    }
}
