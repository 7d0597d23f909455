import Testing

@testable import Telemetry

/// Sampling decisions of the tracer.
@Suite struct SamplingTests {
    private static func tracer(_ ratio: Double) -> Tracer {
        Tracer(ratio: ratio, SpanExporter.forTests { _ in .taken(rejected: 0, reason: "") })
    }

    @Test func samplesTheRatioOfNewTraces() {
        let tracer = Self.tracer(0.25)
        let recorded = (0..<20_000).count { _ in tracer.begin(under: nil) != nil }
        // Five standard deviations around the expected 5000.
        #expect((4700...5300).contains(recorded))
        #expect((0..<1000).allSatisfy { _ in Self.tracer(0).begin(under: nil) == nil })
        #expect((0..<1000).allSatisfy { _ in Self.tracer(1).begin(under: nil)?.isSampled == true })
    }

    @Test(arguments: [0.0, 1.0]) func followsTheDecisionOfTheParent(ratio: Double) {
        let tracer = Self.tracer(ratio)
        let recorded = TraceContext(isSampled: true)
        let child = tracer.begin(under: recorded)
        #expect(child?.traceID == recorded.traceID && child?.spanID != recorded.spanID && child?.isSampled == true)
        #expect(tracer.begin(under: TraceContext(isSampled: false)) == nil)
    }
}
