import Curl
import Formats
import HalcyonCluster
import HalcyonModel
import Telemetry
import TestSupport
import Testing

@testable import HalcyonGateway

/// `/v1/cancel`, `/v1/paused` and `GET /v1/jobs`, in a whole cluster.
@Suite(.limitedParallelism) struct ControlRouteTests {
    private static func stallingOrigin() -> RawOrigin {
        RawOrigin { _ in [.text("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nabc"), .awaitEnd] }
    }

    /// Returns the list of jobs in flight that a query selects, once all workers have replied in time and it contains
    /// `count` jobs.
    private static func list(_ query: String, jobs count: Int, _ client: GatewayClient) async throws -> [String: Any] {
        let response = try await firstValue("the jobs of \(query) are listed") { () async throws -> HTTPResponse? in
            let response = try await client.send(.get, "/v1/jobs?\(query)")
            let (jobs, missing) = (response.json["jobs"] as? [Any], response.json["missing"] as? [String])
            return jobs?.count == count && missing == [] ? response : nil
        }
        return response.json
    }

    @Test func cancelsAndListsJobsInFlight() async throws {
        let origin = Self.stallingOrigin()
        try await GatewayFixture.with { fixture in
            try await fixture.withWorker {
                try await fixture.withGateway { (client: GatewayClient) async throws in
                    for (id, members) in [("a", #","tags":["x"]"#), ("b", #","tenant":"t""#), ("c", "")] {
                        let job = #"{"id":"\#(id)","source":"\#(origin.url("/\(id)"))"\#(members)}"#
                        #expect(try await client.send(.post, "/v1/jobs", job).status == 202)
                    }
                    try await until("all jobs are in flight") {
                        try await client.send(.get, "/v1/jobs").json["total"] as? Int == 3
                    }
                    let list = try await Self.list("tenant=t", jobs: 1, client)
                    let job = try #require((list["jobs"] as? [[String: Any]])?.first)
                    #expect(job["id"] as? String == "b" && job["lane"] as? String == "normal")
                    #expect(job["source"] as? String == origin.url("/b") && job["attempt"] as? Int == 1)
                    #expect((list["workers"] as? [String]) == [job["worker"] as? String ?? ""])
                    let one = try await Self.list("limit=1&lane=normal", jobs: 1, client)
                    #expect(one["total"] as? Int == 3)

                    let targets = [
                        ("a", #"{"tag":"x"}"#), ("b", #"{"tenant":"t"}"#), ("c", #"{"source":"\#(origin.url("/c"))"}"#),
                    ]
                    for (id, body) in targets {
                        let answer = try await client.send(.post, "/v1/cancel", body)
                        #expect(answer.status == 202 && answer.json["state"] as? String == "cancelling")
                        let state = try await client.send(.get, "/v1/jobs/\(id)?wait=500").json
                        #expect(state["state"] as? String == "cancelled")
                    }
                }
            }
        }
        try await origin.stop()
    }

    @Test func pausesAndResumes() async throws {
        let metrics = Metrics()
        try await GatewayFixture.with { fixture in
            try await fixture.withWorker(metrics: metrics) {
                try await fixture.withGateway { (client: GatewayClient) async throws in
                    #expect(try await client.send(.get, "/v1/paused").text == #"{"lanes":[],"tenants":[]}"#)
                    let lane = try await client.send(.put, "/v1/paused/lanes/low")
                    #expect(lane.status == 200 && lane.json["lane"] as? String == "low")
                    let since = try #require(lane.json["since"] as? String)
                    #expect(Timestamp(rfc3339: since) != nil)
                    #expect(try await client.send(.put, "/v1/paused/lanes/low").json["since"] as? String == since)
                    #expect(try await client.send(.put, "/v1/paused/tenants/acme").status == 200)
                    let all = try await client.send(.get, "/v1/paused").json
                    #expect((all["lanes"] as? [[String: Any]])?.map { $0["lane"] as? String } == ["low"])
                    #expect((all["tenants"] as? [[String: Any]])?.map { $0["tenant"] as? String } == ["acme"])
                    try await until("the worker knows the pauses") {
                        metrics.value(of: #"halcyon_lane_paused{lane="low"}"#) == 1
                            && metrics.value(of: "halcyon_tenants_paused") == 1
                    }

                    let job = #"{"id":"a","source":"initials:A","width":8,"tenant":"acme"}"#
                    #expect(try await client.send(.post, "/v1/jobs", job).status == 202)
                    let other = #"{"id":"b","source":"initials:B","width":8}"#
                    #expect(try await client.send(.post, "/v1/jobs", other).status == 202)
                    #expect(try await client.send(.get, "/v1/jobs/b?wait=500").json["state"] as? String == "ready")
                    try await until("the job is held") { metrics.value(of: "halcyon_paused_records") == 1 }
                    #expect(try await client.send(.get, "/v1/jobs/a").json["state"] as? String != "ready")
                    #expect(try await client.send(.delete, "/v1/paused/tenants/acme").status == 204)
                    #expect(try await client.send(.get, "/v1/jobs/a?wait=500").json["state"] as? String == "ready")
                    #expect(try await client.send(.delete, "/v1/paused/lanes/low").status == 204)
                    #expect(try await client.send(.delete, "/v1/paused/lanes/low").status == 404)
                    #expect(try await client.send(.get, "/v1/paused").text == #"{"lanes":[],"tenants":[]}"#)
                }
            }
        }
    }

    @Test func rejectsInvalidRequests() async throws {
        try await GatewayFixture.with { fixture in
            try await fixture.withGateway { (client: GatewayClient) async throws in
                for body in ["", "{}", "[]", #"{"tag":"a","source":"initials:A"}"#, #"{"tags":"a","tenant":"t"}"#] {
                    let answer = try await client.send(.post, "/v1/cancel", body)
                    #expect(
                        answer.status == 400
                            && (answer.json["detail"] as? String)?.hasPrefix("invalid cancellation: ") == true)
                }
                let id = try await client.send(.post, "/v1/cancel", #""a""#)
                #expect(id.status == 400 && id.text.contains("use DELETE /v1/jobs/{id}"))
                let text = ["Content-Type": "text/plain"] as HTTPFields
                #expect(try await client.send(.post, "/v1/cancel", #"{"tag":"a"}"#, headers: text).status == 415)
                #expect(try await client.send(.put, "/v1/paused/lanes/slow").status == 404)
                #expect(try await client.send(.put, "/v1/paused/tenants/a%20b").status == 400)
                for query in ["limit=0", "limit=1001", "lane=slow", "tenant=a%20b"] {
                    #expect(try await client.send(.get, "/v1/jobs?\(query)").status == 400)
                }
                // Without workers there is nothing to wait for.
                let list = try await client.send(.get, "/v1/jobs")
                #expect(list.text == #"{"jobs":[],"total":0,"workers":[],"missing":[]}"#)
                await fixture.redis.stop()
                #expect(try await client.send(.get, "/v1/paused").status == 503)
                #expect(try await client.send(.put, "/v1/paused/lanes/low").status == 503)
                #expect(try await client.send(.get, "/v1/jobs").status == 503)
            }
        }
    }

    @Test func controlRequiresTheAdminScope() async throws {
        try await GatewayFixture.with { fixture in
            try await fixture.withGateway({
                $0.access.keys = [APIKey(name: "k", secret: "k", scopes: [.submit, .read])]
            }) { (client: GatewayClient) async throws in
                let key = ["X-API-Key": "k", "Content-Type": "application/json"] as HTTPFields
                #expect(try await client.send(.post, "/v1/cancel", #"{"tenant":"t"}"#, headers: key).status == 403)
                #expect(try await client.send(.get, "/v1/jobs", headers: key).status == 403)
                #expect(try await client.send(.get, "/v1/paused", headers: key).status == 403)
                for path in ["/v1/paused/lanes/low", "/v1/paused/tenants/t"] {
                    #expect(try await client.send(.put, path, headers: key).status == 403)
                    #expect(try await client.send(.delete, path, headers: key).status == 403)
                }
                #expect(try await client.send(.post, "/v1/cancel", #"{"tenant":"t"}"#).status == 401)
            }
        }
    }
}
