import HalcyonCluster
import HalcyonModel
import Kafka
import TestSupport
import Testing

@testable import HalcyonGateway

/// Jobs rejected with 503 are never published, not even later.
@Suite(.limitedParallelism) struct JobSubmissionFailureTests {
    /// Returns the jobs in a lane.
    private func jobs(_ fixture: GatewayFixture, _ lane: Lane) async throws -> [String] {
        try await fixture.values(in: fixture.topics.jobs(lane))
    }

    @Test func doesNotPublishJobsThatTimedOut() async throws {
        try await GatewayFixture.with { fixture in
            try await fixture.withGateway({ $0.jobs.sendTime = .seconds(1) }) { (client: GatewayClient) async throws in
                @Sendable func submit(_ id: String) async throws -> Int {
                    try await client.send(.post, "/v1/jobs", #"{"id":"\#(id)","source":"initials:J","width":8}"#).status
                }
                @Sendable func render(_ name: String) async throws -> Int {
                    try await client.send(.get, "/v1/render?source=initials:J&width=8&tags=\(name)&wait=0").status
                }
                try await until("jobs are accepted") { try await submit("before") == 202 }
                try await until("renders are accepted") { try await render("before") == 504 }
                await fixture.broker.setDown(true)
                #expect(try await submit("meanwhile") == 503)
                #expect(try await render("meanwhile") == 503)
                #expect(try await client.send(.get, "/v1/jobs/meanwhile").status == 404)
                await fixture.broker.setDown(false)
                try await until("jobs are accepted again") { try await submit("after") == 202 }
                try await until("renders are accepted again") { try await render("after") == 504 }
                for lane in [Lane.normal, .high] {
                    let jobs = try await jobs(fixture, lane)
                    #expect(jobs.contains { $0.contains("before") } && jobs.contains { $0.contains("after") })
                    #expect(!jobs.contains { $0.contains("meanwhile") })
                }
            }
        }
    }

    /// The brokers are available, but might acknowledge the job after the timeout of the request.
    @Test func doesNotPublishJobsWithoutTimeToSend() async throws {
        try await GatewayFixture.with { fixture in
            try await fixture.withGateway({
                $0.jobs.sendTime = $0.limits.requestTime - JobSubmitter.margin - .milliseconds(200)
            }) { (client: GatewayClient) async throws in
                let job = #"{"id":"late","source":"initials:J","width":8}"#
                let connection = try RawClient(client.port)
                try await connection.send(
                    "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                        + "Content-Length: \(job.utf8.count)\r\nExpect: 100-continue\r\n\r\n")
                // The server asks for the body, so the request has started.
                #expect(try await connection.head().status == 100)
                try await Task.sleep(for: .milliseconds(201))
                try await connection.send(job)
                #expect(try await connection.answer().status == 503)
                #expect(try await jobs(fixture, .normal).isEmpty)
            }
        }
    }
}
