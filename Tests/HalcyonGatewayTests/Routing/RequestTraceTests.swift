import Formats
import HalcyonTelemetry
import Telemetry
import TestSupport
import Testing

/// The spans of requests, as a collector reads them with OpenTelemetry's own definitions.
@Suite(.limitedParallelism) struct RequestTraceTests {
    private static let trace = "0af7651916cd43dd8448eb211c80319c"
    private static let client = "b7ad6b7169203331"

    /// Runs `body` with a gateway whose spans it gives.
    private static func spans(
        ratio: Double = 1, _ body: (GatewayFixture, Asking) async throws -> Void
    ) async throws -> [TraceCollector.Span] {
        let collector = TraceCollector()
        var options = TraceOptions(endpoint: collector.endpoint)
        options.ratio = ratio
        try await GatewayFixture.with { fixture in
            let tracing = Tracing(options, log: .silent, metrics: Metrics())
            let result: Result<Void, any Error>
            do {
                result = .success(
                    try await fixture.withGateway(tracer: tracing.tracer) { (ask: Asking) async throws in
                        try await body(fixture, ask)
                    })
            } catch {
                result = .failure(error)
            }
            await tracing.close(by: .now + .seconds(60))
            try result.get()
        }
        let spans = try await collector.spans()
        try await collector.stop()
        return spans
    }

    /// Submits a job, and gives the `traceparent` of its event: that of the job's message.
    private static func submit(_ ask: Asking, _ traceparent: String?) async throws -> TraceContext {
        var headers: HTTPFields = [:]
        headers["traceparent"] = traceparent
        let job = #"{"id":"traced","source":"initials:J","width":8}"#
        #expect(try await ask(.post, "/v1/jobs", job, headers: headers).status == 202)
        let event = try await ask(.get, "/v1/jobs/traced?wait=60").json["event"] as? [String: Any]
        return try #require(TraceContext(traceparent: event?["traceparent"] as? String ?? ""))
    }

    @Test(arguments: [true, false]) func jobsStandBelowTheirRequest(hasTraceparent: Bool) async throws {
        var place: TraceContext?
        let spans = try await Self.spans { fixture, ask in
            try await fixture.withWorker {
                place = try await Self.submit(ask, hasTraceparent ? "00-\(Self.trace)-\(Self.client)-01" : nil)
            }
        }
        // Asking for the job is no span.
        try #require(spans.count == 1)
        let span = spans[0]
        #expect(span.name == "POST /v1/jobs" && span.kind == 2 && span.status == 0 && span.start <= span.end)
        #expect(span.parent == (hasTraceparent ? Self.client : ""))
        if hasTraceparent { #expect(span.trace == Self.trace) }
        #expect(place?.traceparent == span.traceparent)
        #expect(
            span.attributes == [
                "http.request.method": "POST", "http.route": "/v1/jobs", "http.response.status_code": 202,
            ])
    }

    @Test func whatIsNotRecordedIsNotRecordedFurtherOn() async throws {
        let unrecorded = "00-\(Self.trace)-\(Self.client)-00"
        var place: TraceContext?
        let others = try await Self.spans { fixture, ask in
            try await fixture.withWorker { place = try await Self.submit(ask, unrecorded) }
        }
        #expect(others.isEmpty && place?.traceparent == unrecorded)
        let none = try await Self.spans(ratio: 0) { fixture, ask in
            try await fixture.withWorker { place = try await Self.submit(ask, nil) }
        }
        #expect(none.isEmpty && place?.isSampled == false)
    }

    @Test func onlyTheGatewaysOwnFailuresAreErrors() async throws {
        let spans = try await Self.spans { _, ask in
            _ = try await ask(.get, "/v1/render?source=initials:J&width=-1")
            _ = try await ask(.get, "/v1/render?source=initials:J&width=8&wait=0")
        }
        try #require(spans.count == 2)
        let byStatus = spans.sorted { $0.start < $1.start }
        #expect(byStatus.map(\.name) == ["GET /v1/render", "GET /v1/render"])
        #expect(byStatus.map { $0.attributes["http.response.status_code"] } == [400, 504])
        #expect(byStatus.map { $0.attributes["error.type"] } == [nil, "504"])
        #expect(byStatus.map(\.status) == [0, 2])
    }
}
