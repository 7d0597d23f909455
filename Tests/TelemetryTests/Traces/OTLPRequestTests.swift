import TestSupport
import Testing

@testable import Telemetry

/// Export requests, parsed with OpenTelemetry's own definitions.
@Suite struct OTLPRequestTests {
    private static let producer = TraceContext(traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")!

    @Test func collectorReadsSpansAsRecorded() async throws {
        let other = TraceContext()
        let job = Span(
            "halcyon.job", .consumer, context: Self.producer.child(), parent: Self.producer,
            start: 1_790_000_000_123_456_789, end: 1_790_000_001_000_000_001,
            attributes: [
                "text": "\"quoted\" \\ \u{1}\n ünï 🦭", "number": Int64.max, "least": Int64.min, "yes": true,
                "no": false,
                "left out": nil as String?,
            ], links: [other, Self.producer], status: .error("not_found"))
        let start = Span("start", context: other, parent: nil, start: 5, end: 5)
        let resource: SpanAttributes = ["service.name": "halcyon", "service.version": "1"]
        let body = OTLPRequest(resource: resource, scope: ("halcyon", "1"), spans: [job, start]).bytes
        let read = try await TraceCollector.spans([body])
        try #require(read.count == 2)
        #expect(read[0].trace == Self.producer.traceID && read[0].parent == Self.producer.spanID)
        #expect(read[0].id == job.context.spanID && read[0].id != read[0].parent)
        #expect(read[0].name == "halcyon.job" && read[0].kind == 5 && read[0].scope == "halcyon")
        #expect(read[0].start == 1_790_000_000_123_456_789 && read[0].end == 1_790_000_001_000_000_001)
        #expect(
            read[0].attributes == [
                "text": "\"quoted\" \\ \u{1}\n ünï 🦭", "number": .integer(.max), "least": .integer(.min), "yes": true,
                "no": false,
            ])
        #expect(
            read[0].links == ["\(other.traceID)-\(other.spanID)", "\(Self.producer.traceID)-\(Self.producer.spanID)"])
        #expect(read[0].status == 2 && read[0].message == "not_found")
        #expect(read[0].resource == ["service.name": "halcyon", "service.version": "1"])
        #expect(read[1].parent.isEmpty && read[1].kind == 1 && read[1].status == 0 && read[1].links.isEmpty)
        #expect(read[1].attributes.isEmpty && read[1].trace == other.traceID)
    }

    /// The test's collector must reject invalid requests, otherwise it would prove nothing.
    @Test(arguments: [
        #"{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"00","spanId":"b7ad6b7169203331"}]}]}]}"#,
        #"{"resourceSpans":[{"scopeSpans":[{"spans":[{"unknown":1}]}]}]}"#,
        #"{"resourceSpans":[{"scopeSpans":[{"spans":[{"kind":"SPAN_KIND_CLIENT"}]}]}]}"#,
        #"{"resourceSpans":[{"scopeSpans":[{"spans":[{"startTimeUnixNano":1}]}]}]}"#,
        #"{"resource_spans":[]}"#, "{",
    ])
    func collectorRejectsInvalidRequests(body: String) async {
        await #expect(throws: ConditionTimeout.self) { try await TraceCollector.spans([Array(body.utf8)]) }
    }

    @Test func spanEndIsNotBeforeItsStart() {
        #expect(Span("a", context: TraceContext(), parent: nil, start: 7, end: 3).end == 7)
    }

    @Test func lastAttributeValueWins() {
        var attributes: SpanAttributes = ["a": 1, "b": "x", "a": 2]
        attributes.merge(["b": "y", "c": true])
        #expect(attributes == ["a": 2, "b": "y", "c": true])
        attributes["a"] = nil
        #expect(attributes["a"] == nil && attributes["c"] == .bool(true))
    }
}
