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
