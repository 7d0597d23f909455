import Formats
import Foundation
import HalcyonCoding
import Redis
import TestSupport
import Testing

@testable import HalcyonGateway

/// `/v1/jobs`, in a whole cluster.
@Suite(.limitedParallelism) struct JobRouteTests {
    private static let json: HTTPFields = ["Content-Type": "application/json"]
    private static let lines: HTTPFields = ["Content-Type": "application/x-ndjson"]

    private static let access = AccessOptions.with {
        $0.keys = [
            APIKey(name: "a", secret: "a-secret", scopes: [.submit, .read]),
            APIKey(name: "b", secret: "b-secret", scopes: [.submit, .read]),
            APIKey(name: "chief", secret: "c-secret", scopes: [.admin]),
        ]
    }

    @Test func acceptsRendersAndReportsAJob() async throws {
        try await GatewayFixture.with { fixture in
            try await fixture.withWorker {
                try await fixture.withGateway { (client: GatewayClient) async throws in
                    let accepted = try await client.send(
                        .post, "/v1/jobs", #"{"id":"a b/ü","source":"initials:J","width":8,"height":8,"width2":1}"#,
                        headers: Self.json)
                    #expect(accepted.status == 202)
                    #expect(accepted.json["id"] as? String == "a b/ü" && accepted.json["lane"] as? String == "normal")
                    #expect(accepted.json["unknownFields"] as? [String] == ["width2"])
                    let location = try #require(accepted.headers["Location"])
                    #expect(location == "/v1/jobs/a%20b%2F%C3%BC" && location == accepted.json["status"] as? String)
                    let state = try await client.send(.get, "\(location)?wait=500")
                    #expect(state.status == 200 && state.json["state"] as? String == "ready")
                    let event = try #require(state.json["event"] as? [String: Any])
                    #expect(event["type"] as? String == "halcyon.image.ready")
                    let data = try #require(event["data"] as? [String: Any])
                    #expect(data["warnings"] as? [String] == [#"unknown field "width2""#])
                    // The state in Redis, which all gateways share, is updated a little later.
                    try await until("the state is ready") {
                        try await client.send(.get, location).json["state"] as? String == "ready"
                    }
                    let image = try #require((accepted.json["images"] as? [String])?.first)
                    let answer = try await client.send(.get, image)
                    #expect(answer.status == 200 && answer.headers["Content-Type"] == "image/png")
                    // A job that has ended cannot be cancelled.
                    #expect(try await client.send(.delete, location).status == 409)
                }
            }
        }
    }

    /// A key cannot cancel jobs of another key or reuse their ids. A key with the scope `admin` can cancel all jobs.
    @Test func jobsBelongToTheKeyThatSubmittedThem() async throws {
        let (a, b, admin): (HTTPFields, HTTPFields, HTTPFields) = (
            ["X-API-Key": "a-secret"], ["X-API-Key": "b-secret"], ["X-API-Key": "c-secret"]
        )
        func job(_ id: String) -> String { #"{"id":"\#(id)","source":"initials:J","width":8}"# }
        try await GatewayFixture.with { fixture in
            try await fixture.withGateway({ $0.access = Self.access }) { (client: GatewayClient) async throws in
                #expect(try await client.send(.post, "/v1/jobs", job("one"), headers: a).status == 202)
                // The same key can submit it again.
                #expect(try await client.send(.post, "/v1/jobs", job("one"), headers: a).status == 202)
                for headers in [b, admin] {
                    #expect(try await client.send(.post, "/v1/jobs", job("one"), headers: headers).status == 409)
                }
                var lines = b
                lines["Content-Type"] = "application/x-ndjson"
                let several = try await client.send(
                    .post, "/v1/jobs", job("one") + "\n" + job("two") + "\n", headers: lines)
                let problem = several.lines.first?["problem"] as? [String: Any]
                #expect(problem?["type"] as? String == "/problems/conflict")
                #expect(several.lines.last?["id"] as? String == "two")
                #expect(try await client.send(.get, "/v1/jobs/one", headers: a).json["state"] as? String == "accepted")

                for id in ["one", "came-by-kafka"] {
                    #expect(try await client.send(.delete, "/v1/jobs/\(id)", headers: b).status == 403)
                }
                #expect(try await client.send(.delete, "/v1/jobs/one", headers: a).status == 202)
                #expect(try await client.send(.delete, "/v1/jobs/two", headers: b).status == 202)
                for id in ["one", "two", "came-by-kafka"] {
                    #expect(try await client.send(.delete, "/v1/jobs/\(id)", headers: admin).status == 202)
                }
            }
            // A gateway without keys ignores ownership.
            try await fixture.withGateway { (client: GatewayClient) async throws in
                #expect(try await client.send(.post, "/v1/jobs", job("one")).status == 202)
                #expect(try await client.send(.delete, "/v1/jobs/one").status == 202)
            }
        }
    }

    @Test func cancellationByAKeySparesJobsOfOtherProducersWithTheSameID() async throws {
        let origin = RawOrigin { _ in [.text("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nabc"), .awaitEnd] }
        func job(_ path: String) -> String { #"{"id":"one","source":"\#(origin.url(path))","width":8}"# }
        let admin: HTTPFields = ["X-API-Key": "c-secret"]
        var key = Self.lines
        key["X-API-Key"] = "a-secret"
        try await GatewayFixture.with { fixture in
            try await fixture.withWorker {
                // A gateway without keys sends jobs as other producers do.
                try await fixture.withGateway { (open: GatewayClient) async throws in
                    #expect(try await open.send(.post, "/v1/jobs", job("/kafka")).status == 202)
                }
                try await fixture.withGateway({ $0.access = Self.access }) { (client: GatewayClient) async throws in
                    /// The sources of the jobs in flight; nil if the worker has not replied in time.
                    @Sendable func sources() async throws -> [String]? {
                        let list = try await client.send(.get, "/v1/jobs", headers: admin).json
                        guard (list["missing"] as? [String])?.isEmpty == true else { return nil }
                        return (list["jobs"] as? [[String: Any]])?.compactMap { $0["source"] as? String }
                    }
                    for (path, source) in [("/v1/jobs", "/job"), ("/v1/batches", "/batch")] {
                        let submitted = try await client.send(.post, path, job(source), headers: key)
                        #expect([200, 202].contains(submitted.status))
                    }
                    try await until("all jobs are in flight") { try await sources()?.count == 3 }
                    #expect(try await client.send(.delete, "/v1/jobs/one", headers: key).status == 202)
                    let other = origin.url("/kafka")
                    try await until("only the other job is in flight") { try await sources() == [other] }
                    let body = #"{"source":"\#(other)"}"#
                    #expect(try await client.send(.post, "/v1/cancel", body, headers: admin).status == 202)
                    try await until("no job is in flight") { try await sources()?.isEmpty == true }
                }
            }
        }
        try await origin.stop()
    }

    /// For a single job and for NDJSON.
    @Test(arguments: [json, lines]) func propagatesTheTraceOfTheRequest(headers: HTTPFields) async throws {
        let traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        var headers = headers
        headers["traceparent"] = traceparent
        try await GatewayFixture.with { fixture in
            try await fixture.withWorker {
                try await fixture.withGateway { (client: GatewayClient) async throws in
                    _ = try await client.send(
                        .post, "/v1/jobs", #"{"id":"traced","source":"initials:J","width":8}"#, headers: headers)
                    let state = try await client.send(.get, "/v1/jobs/traced?wait=500")
                    let event = try #require(state.json["event"] as? [String: Any])
                    #expect(event["traceparent"] as? String == traceparent)
                }
            }
        }
    }

    @Test func generatesUniqueJobIDs() async throws {
        try await GatewayFixture.with { fixture in
            try await fixture.withGateway { (client: GatewayClient) async throws in
                var ids: Set<String> = []
                for _ in 0..<3 {
                    let accepted = try await client.send(.post, "/v1/jobs", #"{"source":"initials:J","width":8}"#)
                    ids.insert(try #require(accepted.json["id"] as? String))
                    let location = try #require(accepted.headers["Location"])
                    #expect(try await client.send(.get, location).json["state"] as? String == "accepted")
                }
                #expect(ids.count == 3 && ids.allSatisfy { $0.hasPrefix("http-") })
            }
        }
    }

    @Test func mapsPriorityToLane() async throws {
        try await GatewayFixture.with { fixture in
            try await fixture.withGateway { (client: GatewayClient) async throws in
                for lane in ["high", "normal", "low"] {
                    let accepted = try await client.send(
                        .post, "/v1/jobs", #"{"source":"initials:J","width":8,"priority":"\#(lane)"}"#)
                    #expect(accepted.json["lane"] as? String == lane)
                }
            }
        }
    }

    @Test func rejectsInvalidJobsWithAReason() async throws {
        let cases = [
            (#"{"source": 5"#, "invalid_job"), ("", "invalid_job"), ("[]", "invalid_job"), ("null", "invalid_job"),
            (#"{"width":5}"#, "invalid_job"),
            (#"{"source":"gopher://x/","width":5}"#, "unsupported_source"),
            (#"{"source":"initials:J","width":8,"id":""}"#, "invalid_job"),
            (#"{"source":"initials:J","width":8,"id":""}"#, "invalid_job"),
            (#"{"source":"initials:J","width":8,"priority":"urgent"}"#, "invalid_job"),
        ]
        try await GatewayFixture.with { fixture in
            try await fixture.withGateway { (client: GatewayClient) async throws in
                for (body, code) in cases {
                    let answer = try await client.send(.post, "/v1/jobs", body, headers: Self.json)
                    #expect(answer.status == 400, "\(body)")
                    #expect(answer.headers["Content-Type"] == "application/problem+json")
                    #expect(
                        answer.json["code"] as? String == code
                            && answer.json["type"] as? String == "/problems/invalid-job")
                    #expect((answer.json["detail"] as? String)?.isEmpty == false)
                }
            }
        }
    }

    @Test func acceptsNDJSONAndAnswersEachLine() async throws {
        try await GatewayFixture.with { fixture in
            try await fixture.withWorker {
                try await fixture.withGateway { (client: GatewayClient) async throws in
                    var body = ""
                    for number in 0..<2000 {
                        body += #"{"id":"\#(number)","source":"initials:\#(number % 7)","width":8,"height":8}"# + "\n"
                        if number % 500 == 250 { body += "\n{rubbish\r\n" }
                    }
                    let answer = try await client.send(.post, "/v1/jobs", body, headers: Self.lines)
                    #expect(answer.status == 200 && answer.headers["Content-Type"] == "application/x-ndjson")
                    let lines = answer.lines
                    #expect(lines.count == 2004)
                    #expect(lines.compactMap { $0["id"] as? String } == (0..<2000).map { "\($0)" })
                    // The first invalid line follows 251 jobs and a blank line.
                    let bad = lines.filter { $0["problem"] != nil }
                    #expect(bad.compactMap { $0["line"] as? Int } == [253, 755, 1257, 1759])
                    for id in ["0", "1999"] {
                        #expect(
                            try await client.send(.get, "/v1/jobs/\(id)?wait=500").json["state"] as? String == "ready")
                    }
                }
            }
        }
    }

    @Test func rejectsTooManyLinesAndOversizedJobs() async throws {
        try await GatewayFixture.with { fixture in
            try await fixture.withGateway({
                $0.jobs.linesAtOnce = 3
                $0.reader.maximumBytes = 200
            }) { (client: GatewayClient) async throws in
                let job = #"{"source":"initials:J","width":8}"# + "\n"
                #expect(
                    try await client.send(.post, "/v1/jobs", String(repeating: job, count: 3), headers: Self.lines)
                        .status
                        == 200)
                let more = try await client.send(
                    .post, "/v1/jobs", String(repeating: job, count: 4), headers: Self.lines)
                #expect(more.status == 413 && (more.json["detail"] as? String)?.contains("more than 3") == true)
                let long = String(repeating: " ", count: 300)
                let lines = try await client.send(.post, "/v1/jobs", "{\(long)}\n" + job, headers: Self.lines).lines
                #expect((lines.first?["problem"] as? [String: Any])?["status"] as? Int == 413)
                #expect(lines.last?["id"] != nil)
                #expect(try await client.send(.post, "/v1/jobs", "{\(long)}", headers: Self.json).status == 413)
            }
        }
    }

    /// The lines before the limit are accepted, with the states and the owner of their jobs.
    @Test func tooManyLinesDoNotAffectTheLinesBefore() async throws {
        let access = AccessOptions.with {
            $0.keys = ["a", "b"].map { APIKey(name: $0, secret: "\($0)-secret", scopes: [.submit, .read]) }
        }
        let (a, b): (HTTPFields, HTTPFields) = (["X-API-Key": "a-secret"], ["X-API-Key": "b-secret"])
        try await GatewayFixture.with { fixture in
            try await fixture.withGateway({
                $0.access = access
                $0.jobs.linesAtOnce = 200
            }) { (client: GatewayClient) async throws in
                let lines = (0...200).map { #"{"id":"\#($0)","source":"initials:J","width":8}"# + "\n" }.joined()
                var headers = a
                headers["Content-Type"] = "application/x-ndjson"
                #expect(try await client.send(.post, "/v1/jobs", lines, headers: headers).status == 413)
                for id in stride(from: 100, to: 200, by: 9) {
                    let path = "/v1/jobs/\(id)"
                    #expect(try await client.send(.get, path, headers: a).json["state"] as? String == "accepted")
                    #expect(try await client.send(.delete, path, headers: b).status == 403)
                    #expect(try await client.send(.delete, path, headers: a).status == 202)
                }
                #expect(try await client.send(.get, "/v1/jobs/200", headers: a).status == 404)
            }
        }
    }

    /// Content types that pages of other sites can send without a preflight request.
    @Test func rejectsOtherContentTypes() async throws {
        let cases = [
            "", "text/plain", "text/plain;charset=application/json", "application/x-www-form-urlencoded",
            "multipart/form-data", "text/csv",
        ]
        try await GatewayFixture.with { fixture in
            try await fixture.withGateway { (client: GatewayClient) async throws in
                for type in cases {
                    for (path, body) in [("/v1/jobs", #"{"source":"initials:J"}"#), ("/v1/purge", #"{"tag":"t"}"#)] {
                        #expect(try await client.send(.post, path, body, headers: ["Content-Type": type]).status == 415)
                        let asJSON: HTTPFields = ["Content-Type": "Application/JSON ; charset=utf-8"]
                        #expect(try await client.send(.post, path, body, headers: asJSON).status < 300)
                    }
                }
            }
        }
    }

    @Test func cancelsAJobInFlight() async throws {
        let origin = RawOrigin { _ in [.text("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nabc"), .awaitEnd] }
        try await GatewayFixture.with { fixture in
            try await fixture.withWorker {
                try await fixture.withGateway { (client: GatewayClient) async throws in
                    let job = #"{"id":"a","source":"\#(origin.url("/a"))","width":8}"#
                    #expect(try await client.send(.post, "/v1/jobs", job).status == 202)
                    try await until("the fetch is in flight") { origin.requests.count == 1 }
                    let answer = try await client.send(.delete, "/v1/jobs/a")
                    #expect(answer.status == 202 && answer.json["state"] as? String == "cancelling")
                    #expect(try await client.send(.get, "/v1/jobs/a?wait=500").json["state"] as? String == "cancelled")
                    try await until("the fetch is aborted") { origin.cuts == 1 }
                }
            }
        }
        try await origin.stop()
    }

    /// Progress events are only delivered to event streams. The state of the job stays `started`.
    @Test func progressDoesNotChangeTheState() async throws {
        let origin = RawOrigin { _ in
            // Bytes arrive for a minute, so that there is progress however late it is looked for.
            [.text("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nabc")]
                + Array(repeating: [.pause(.milliseconds(300)), .text("a")], count: 200).joined() + [.awaitEnd]
        }
        try await GatewayFixture.with { fixture in
            try await fixture.withWorker({ $0.progressInterval = .milliseconds(200) }) {
                try await fixture.withGateway { (client: GatewayClient) async throws in
                    let events = try await EventClient(client.port, "?type=progress")
                    try await events.waitForStart()
                    let job = #"{"id":"a","source":"\#(origin.url("/a"))","width":8}"#
                    #expect(try await client.send(.post, "/v1/jobs", job).status == 202)
                    let progress = try await events.data(2)
                    #expect(progress.allSatisfy { $0.contains(#""stage":"fetch","received":"#) })
                    try await until("the state is started") {
                        try await client.send(.get, "/v1/jobs/a?wait=0.1").json["state"] as? String == "started"
                    }
                    #expect(try await client.send(.get, "/v1/jobs/a?wait=1").json["state"] as? String == "started")
                    #expect(try await client.send(.delete, "/v1/jobs/a").status == 202)
                    #expect(try await client.send(.get, "/v1/jobs/a?wait=500").json["state"] as? String == "cancelled")
                }
            }
        }
        try await origin.stop()
    }

    @Test func waitEndsAtItsTimeoutOrTheMaximum() async throws {
        try await GatewayFixture.with { fixture in
            try await fixture.withGateway({ $0.jobs.longestWait = .milliseconds(300) }) {
                (client: GatewayClient) async throws in
                #expect(
                    try await client.send(.post, "/v1/jobs", #"{"id":"a","source":"initials:J","width":8}"#).status
                        == 202)
                #expect(try await client.send(.get, "/v1/jobs/a?wait=0.1").json["state"] as? String == "accepted")
                #expect(try await client.send(.get, "/v1/jobs/a?wait=1000").json["state"] as? String == "accepted")
                #expect(try await client.send(.get, "/v1/jobs/b?wait=0").status == 404)
                #expect(try await client.send(.get, "/v1/jobs/b").status == 404)
                for (wait, status) in [("1e300", 200), ("x", 400), ("inf", 400), ("0x1p900", 400)] {
                    #expect(try await client.send(.get, "/v1/jobs/a?wait=\(wait)").status == status)
                }
            }
        }
    }

    /// The event of a job may have been read before somebody waits for it, and its state stored after that.
    @Test func waitNoticesAStateThatIsStoredLater() async throws {
        try await GatewayFixture.with { fixture in
            try await fixture.withGateway({ $0.jobs.longestWait = .seconds(600) }) {
                (client: GatewayClient) async throws in
                let job = #"{"id":"a","source":"initials:J","width":8}"#
                #expect(try await client.send(.post, "/v1/jobs", job).status == 202)
                async let state = client.send(.get, "/v1/jobs/a?wait=600")
                // If the request takes longer, this test shows nothing.
                try await Task.sleep(for: .milliseconds(300))
                let redis = RedisClient(fixture.endpoint)
                _ = try await redis.send(["SET", "halcyon:job:a", #"{"id":"a","state":"ready"}"#])
                await redis.close()
                #expect(try await state.json["state"] as? String == "ready")
            }
        }
    }

    /// A request after the end was reported sees no earlier state.
    @Test func theEndOfAJobIsStoredBeforeItIsReported() async throws {
        try await GatewayFixture.with { fixture in
            try await fixture.withWorker {
                try await fixture.withGateway { (client: GatewayClient) async throws in
                    for number in 0..<30 {
                        let job = #"{"id":"\#(number)","source":"initials:J","width":8}"#
                        #expect(try await client.send(.post, "/v1/jobs", job).status == 202)
                        let path = "/v1/jobs/\(number)"
                        #expect(try await client.send(.get, "\(path)?wait=500").json["state"] as? String == "ready")
                        #expect(try await client.send(.get, path).json["state"] as? String == "ready")
                        #expect(try await client.send(.delete, path).status == 409)
                    }
                }
            }
        }
    }

    @Test func stateConsistsOfIDStateAndEvent() {
        let event =
            #"{"specversion":"1.0","id":"1","type":"halcyon.image.cancelled","source":"x","data":{"job":{"id":"a"}}}"#
        let memory = JobStateStore.state(after: DecodedEvent(json: Array(event.utf8))!, Array(event.utf8))
        #expect(String(decoding: memory, as: UTF8.self) == #"{"id":"a","state":"cancelled","event":\#(event)}"#)
    }
}
