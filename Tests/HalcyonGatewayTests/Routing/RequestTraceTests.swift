import Formats
import HalcyonTelemetry
import Telemetry
import TestSupport
import Testing

/// The spans of requests, parsed with OpenTelemetry's own definitions.
@Suite(.limitedParallelism) struct RequestTraceTests {
    private static let trace = "0af7651916cd43dd8448eb211c80319c"
    private static let parentSpan = "b7ad6b7169203331"

    /// Runs `body` with a gateway and returns its spans.
    private static func spans(
        ratio: Double = 1, _ body: (GatewayFixture, GatewayClient) async throws -> Void
    ) async throws -> [TraceCollector.Span] {
        let collector = TraceCollector()
        var options = TraceOptions(endpoint: collector.endpoint)
        options.ratio = ratio
        // A span whose export is repeated arrives twice.
        options.timeout = .seconds(60)
        try await GatewayFixture.with { fixture in
            let tracing = Tracing(options, log: .silent, metrics: Metrics())
            let result: Result<Void, any Error>
            do {
                result = .success(
                    try await fixture.withGateway(tracer: tracing.tracer) { (client: GatewayClient) async throws in
                        try await body(fixture, client)
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

    /// Submits a job and returns the `traceparent` of its event, which is that of the job's record.
    private static func submit(_ client: GatewayClient, _ traceparent: String?) async throws -> TraceContext {
        var headers: HTTPFields = [:]
        headers["traceparent"] = traceparent
        let job = #"{"id":"traced","source":"initials:J","width":8}"#
        #expect(try await client.send(.post, "/v1/jobs", job, headers: headers).status == 202)
        let event = try await client.send(.get, "/v1/jobs/traced?wait=500").json["event"] as? [String: Any]
        return try #require(TraceContext(traceparent: event?["traceparent"] as? String ?? ""))
    }

    @Test(arguments: [true, false]) func requestSpanIsTheParentOfItsJob(hasTraceparent: Bool) async throws {
        var jobContext: TraceContext?
        let spans = try await Self.spans { fixture, client in
            try await fixture.withWorker {
                jobContext = try await Self.submit(
                    client, hasTraceparent ? "00-\(Self.trace)-\(Self.parentSpan)-01" : nil)
            }
        }
        // Requests for the state of a job are not traced.
        try #require(spans.count == 1)
        let span = spans[0]
        #expect(span.name == "POST /v1/jobs" && span.kind == 2 && span.status == 0 && span.start <= span.end)
        #expect(span.parent == (hasTraceparent ? Self.parentSpan : ""))
        if hasTraceparent { #expect(span.trace == Self.trace) }
        #expect(jobContext?.traceparent == span.traceparent)
        #expect(
            span.attributes == [
                "http.request.method": "POST", "http.route": "/v1/jobs", "http.response.status_code": 202,
            ])
    }

    @Test func propagatesTheDecisionNotToSample() async throws {
        let unrecorded = "00-\(Self.trace)-\(Self.parentSpan)-00"
        var jobContext: TraceContext?
        let others = try await Self.spans { fixture, client in
            try await fixture.withWorker { jobContext = try await Self.submit(client, unrecorded) }
        }
        #expect(others.isEmpty && jobContext?.traceparent == unrecorded)
        let none = try await Self.spans(ratio: 0) { fixture, client in
            try await fixture.withWorker { jobContext = try await Self.submit(client, nil) }
        }
        #expect(none.isEmpty && jobContext?.isSampled == false)
    }

    @Test func marksOnlyServerErrorsAsErrors() async throws {
        let spans = try await Self.spans { _, client in
            _ = try await client.send(.get, "/v1/render?source=initials:J&width=-1")
            _ = try await client.send(.get, "/v1/render?source=initials:J&width=8&wait=0")
        }
        try #require(spans.count == 2)
        let byStatus = spans.sorted { $0.start < $1.start }
        #expect(byStatus.map(\.name) == ["GET /v1/render", "GET /v1/render"])
        #expect(byStatus.map { $0.attributes["http.response.status_code"] } == [400, 504])
        #expect(byStatus.map { $0.attributes["error.type"] } == [nil, "504"])
        #expect(byStatus.map(\.status) == [0, 2])
    }
}
