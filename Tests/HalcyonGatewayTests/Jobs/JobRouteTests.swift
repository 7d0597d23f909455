import Formats
import Foundation
import HalcyonCoding
import TestSupport
import Testing

@testable import HalcyonGateway

/// Jobs over HTTP, through a whole cluster.
@Suite(.limitedParallelism) struct JobRouteTests {
    private static let json: HTTPFields = ["Content-Type": "application/json"]
    private static let lines: HTTPFields = ["Content-Type": "application/x-ndjson"]

    @Test func aJobIsTakenDoneAndAskedAbout() async throws {
        try await GatewayFixture.with { fixture in
            try await fixture.withWorker {
                try await fixture.withGateway { (ask: Asking) async throws in
                    let taken = try await ask(
                        .post, "/v1/jobs", #"{"id":"a b/ü","source":"initials:J","width":8,"height":8,"width2":1}"#,
                        headers: Self.json)
                    #expect(taken.status == 202)
                    #expect(taken.json["id"] as? String == "a b/ü" && taken.json["lane"] as? String == "normal")
                    #expect(taken.json["unknownFields"] as? [String] == ["width2"])
                    let location = try #require(taken.headers["Location"])
                    #expect(location == "/v1/jobs/a%20b%2F%C3%BC" && location == taken.json["status"] as? String)
                    let state = try await ask(.get, "\(location)?wait=30")
                    #expect(state.status == 200 && state.json["state"] as? String == "ready")
                    let event = try #require(state.json["event"] as? [String: Any])
                    #expect(event["type"] as? String == "halcyon.image.ready")
                    let data = try #require(event["data"] as? [String: Any])
                    #expect(data["warnings"] as? [String] == [#"unknown field "width2""#])
                    // What every gateway knows, once theirs have heard of it.
                    try await until("its state is known") {
                        try await ask(.get, location).json["state"] as? String == "ready"
                    }
                    let image = try #require((taken.json["images"] as? [String])?.first)
                    let answer = try await ask(.get, image)
                    #expect(answer.status == 200 && answer.headers["Content-Type"] == "image/png")
                    // What has ended is not cancelled.
                    #expect(try await ask(.delete, location).status == 409)
                }
            }
        }
    }

    /// By HTTP nobody cancels another one's job or takes its id; who administers may cancel all.
    @Test func jobsAreBoundToTheKeyThatTheyCameBy() async throws {
        let access = AccessOptions.with {
            $0.keys = [
                APIKey(name: "a", secret: "a-secret", scopes: [.submit, .read]),
                APIKey(name: "b", secret: "b-secret", scopes: [.submit, .read]),
                APIKey(name: "chief", secret: "c-secret", scopes: [.admin]),
            ]
        }
        let (a, b, chief): (HTTPFields, HTTPFields, HTTPFields) = (
            ["X-API-Key": "a-secret"], ["X-API-Key": "b-secret"], ["X-API-Key": "c-secret"]
        )
        func job(_ id: String) -> String { #"{"id":"\#(id)","source":"initials:J","width":8}"# }
        try await GatewayFixture.with { fixture in
            try await fixture.withGateway({ $0.access = access }) { (ask: Asking) async throws in
                #expect(try await ask(.post, "/v1/jobs", job("one"), headers: a).status == 202)
                // The same once more is the same one's.
                #expect(try await ask(.post, "/v1/jobs", job("one"), headers: a).status == 202)
                for headers in [b, chief] {
                    #expect(try await ask(.post, "/v1/jobs", job("one"), headers: headers).status == 409)
                }
                var lines = b
                lines["Content-Type"] = "application/x-ndjson"
                let several = try await ask(.post, "/v1/jobs", job("one") + "\n" + job("two") + "\n", headers: lines)
                let problem = several.lines.first?["problem"] as? [String: Any]
                #expect(problem?["type"] as? String == "/problems/conflict")
                #expect(several.lines.last?["id"] as? String == "two")
                #expect(try await ask(.get, "/v1/jobs/one", headers: a).json["state"] as? String == "accepted")

                for id in ["one", "came-by-kafka"] {
                    #expect(try await ask(.delete, "/v1/jobs/\(id)", headers: b).status == 403)
                }
                #expect(try await ask(.delete, "/v1/jobs/one", headers: a).status == 202)
                #expect(try await ask(.delete, "/v1/jobs/two", headers: b).status == 202)
                for id in ["one", "two", "came-by-kafka"] {
                    #expect(try await ask(.delete, "/v1/jobs/\(id)", headers: chief).status == 202)
                }
            }
            // Who asks for no key knows of none.
            try await fixture.withGateway { (ask: Asking) async throws in
                #expect(try await ask(.post, "/v1/jobs", job("one")).status == 202)
                #expect(try await ask(.delete, "/v1/jobs/one").status == 202)
            }
        }
    }

    /// Of a job by itself, and of each of several.
    @Test(arguments: [json, lines]) func theTraceOfTheRequestIsTheJobs(headers: HTTPFields) async throws {
        let traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        var headers = headers
        headers["traceparent"] = traceparent
        try await GatewayFixture.with { fixture in
            try await fixture.withWorker {
                try await fixture.withGateway { (ask: Asking) async throws in
                    _ = try await ask(
                        .post, "/v1/jobs", #"{"id":"traced","source":"initials:J","width":8}"#, headers: headers)
                    let state = try await ask(.get, "/v1/jobs/traced?wait=30")
                    let event = try #require(state.json["event"] as? [String: Any])
                    #expect(event["traceparent"] as? String == traceparent)
                }
            }
        }
    }

    @Test func jobsWithoutAnIdGetOneEach() async throws {
        try await GatewayFixture.with { fixture in
            try await fixture.withGateway { (ask: Asking) async throws in
                var ids: Set<String> = []
                for _ in 0..<3 {
                    let taken = try await ask(.post, "/v1/jobs", #"{"source":"initials:J","width":8}"#)
                    ids.insert(try #require(taken.json["id"] as? String))
                    let location = try #require(taken.headers["Location"])
                    #expect(try await ask(.get, location).json["state"] as? String == "accepted")
                }
                #expect(ids.count == 3 && ids.allSatisfy { $0.hasPrefix("http-") })
            }
        }
    }

    @Test func theLaneIsThatOfThePriority() async throws {
        try await GatewayFixture.with { fixture in
            try await fixture.withGateway { (ask: Asking) async throws in
                for lane in ["high", "normal", "low"] {
                    let taken = try await ask(
                        .post, "/v1/jobs", #"{"source":"initials:J","width":8,"priority":"\#(lane)"}"#)
                    #expect(taken.json["lane"] as? String == lane)
                }
            }
        }
    }

    @Test(arguments: [
        (#"{"source": 5"#, "invalid_job"), ("", "invalid_job"), ("[]", "invalid_job"), ("null", "invalid_job"),
        (#"{"width":5}"#, "invalid_job"),
        (#"{"source":"gopher://x/","width":5}"#, "unsupported_source"),
        (#"{"source":"initials:J","width":8,"id":""}"#, "invalid_job"),
        (#"{"source":"initials:J","width":8,"id":""}"#, "invalid_job"),
        (#"{"source":"initials:J","width":8,"priority":"urgent"}"#, "invalid_job"),
    ])
    func whatIsNoJobIsRefusedWithItsReason(_ body: String, _ code: String) async throws {
        try await GatewayFixture.with { fixture in
            try await fixture.withGateway { (ask: Asking) async throws in
                let answer = try await ask(.post, "/v1/jobs", body, headers: Self.json)
                #expect(answer.status == 400)
                #expect(answer.headers["Content-Type"] == "application/problem+json")
                #expect(
                    answer.json["code"] as? String == code && answer.json["type"] as? String == "/problems/invalid-job")
                #expect((answer.json["detail"] as? String)?.isEmpty == false)
            }
        }
    }

    @Test func manyComeOneALineAndEachIsAnswered() async throws {
        try await GatewayFixture.with { fixture in
            try await fixture.withWorker {
                try await fixture.withGateway { (ask: Asking) async throws in
                    var body = ""
                    for number in 0..<2000 {
                        body += #"{"id":"\#(number)","source":"initials:\#(number % 7)","width":8,"height":8}"# + "\n"
                        if number % 500 == 250 { body += "\n{rubbish\r\n" }
                    }
                    let answer = try await ask(.post, "/v1/jobs", body, headers: Self.lines)
                    #expect(answer.status == 200 && answer.headers["Content-Type"] == "application/x-ndjson")
                    let lines = answer.lines
                    #expect(lines.count == 2004)
                    #expect(lines.compactMap { $0["id"] as? String } == (0..<2000).map { "\($0)" })
                    // 250 lines, one that is blank, and the first that is no job.
                    let bad = lines.filter { $0["problem"] != nil }
                    #expect(bad.compactMap { $0["line"] as? Int } == [253, 755, 1257, 1759])
                    for id in ["0", "1999"] {
                        #expect(try await ask(.get, "/v1/jobs/\(id)?wait=30").json["state"] as? String == "ready")
                    }
                }
            }
        }
    }

    @Test func tooMuchAtOnceIsSaid() async throws {
        try await GatewayFixture.with { fixture in
            try await fixture.withGateway({
                $0.jobs.linesAtOnce = 3
                $0.reader.maximumBytes = 200
            }) { (ask: Asking) async throws in
                let job = #"{"source":"initials:J","width":8}"# + "\n"
                #expect(
                    try await ask(.post, "/v1/jobs", String(repeating: job, count: 3), headers: Self.lines).status
                        == 200)
                let more = try await ask(.post, "/v1/jobs", String(repeating: job, count: 4), headers: Self.lines)
                #expect(more.status == 413 && (more.json["detail"] as? String)?.contains("more than 3") == true)
                let long = String(repeating: " ", count: 300)
                let lines = try await ask(.post, "/v1/jobs", "{\(long)}\n" + job, headers: Self.lines).lines
                #expect((lines.first?["problem"] as? [String: Any])?["status"] as? Int == 413)
                #expect(lines.last?["id"] != nil)
                #expect(try await ask(.post, "/v1/jobs", "{\(long)}", headers: Self.json).status == 413)
            }
        }
    }

    /// What a page of another site can send without being asked whether it may.
    @Test(arguments: [
        "", "text/plain", "text/plain;charset=application/json", "application/x-www-form-urlencoded",
        "multipart/form-data", "text/csv",
    ])
    func bodiesOfOtherTypesAreRefused(_ type: String) async throws {
        try await GatewayFixture.with { fixture in
            try await fixture.withGateway { (ask: Asking) async throws in
                for (path, body) in [("/v1/jobs", #"{"source":"initials:J"}"#), ("/v1/purge", #"{"tag":"t"}"#)] {
                    #expect(try await ask(.post, path, body, headers: ["Content-Type": type]).status == 415)
                    let asJSON: HTTPFields = ["Content-Type": "Application/JSON ; charset=utf-8"]
                    #expect(try await ask(.post, path, body, headers: asJSON).status < 300)
                }
            }
        }
    }

    @Test func aJobIsCancelled() async throws {
        let origin = RawOrigin { _ in [.text("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nabc"), .awaitEnd] }
        try await GatewayFixture.with { fixture in
            try await fixture.withWorker {
                try await fixture.withGateway { (ask: Asking) async throws in
                    let job = #"{"id":"a","source":"\#(origin.url("/a"))","width":8}"#
                    #expect(try await ask(.post, "/v1/jobs", job).status == 202)
                    try await until("it is under way") { origin.requests.count == 1 }
                    let answer = try await ask(.delete, "/v1/jobs/a")
                    #expect(answer.status == 202 && answer.json["state"] as? String == "cancelling")
                    #expect(try await ask(.get, "/v1/jobs/a?wait=30").json["state"] as? String == "cancelled")
                    try await until("the transfer is cut") { origin.cuts == 1 }
                }
            }
        }
        try await origin.stop()
    }

    /// Progress is for followers of events: the state of the job stays `started`.
    @Test func progressChangesNoState() async throws {
        let origin = RawOrigin { _ in
            [.text("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nabc"), .pause(.seconds(1)), .text("abc"), .awaitEnd]
        }
        try await GatewayFixture.with { fixture in
            try await fixture.withWorker({ $0.progressInterval = .milliseconds(200) }) {
                try await fixture.withGateway { (ask: Asking) async throws in
                    let events = try await EventClient(ask.port, "?type=progress")
                    try await events.begun()
                    let job = #"{"id":"a","source":"\#(origin.url("/a"))","width":8}"#
                    #expect(try await ask(.post, "/v1/jobs", job).status == 202)
                    let told = try await events.data(2)
                    #expect(told.allSatisfy { $0.contains(#""stage":"fetch","received":"#) })
                    try await until("what follows is told") {
                        try await ask(.get, "/v1/jobs/a?wait=0.1").json["state"] as? String == "started"
                    }
                    #expect(try await ask(.get, "/v1/jobs/a?wait=1").json["state"] as? String == "started")
                    #expect(try await ask(.delete, "/v1/jobs/a").status == 202)
                    #expect(try await ask(.get, "/v1/jobs/a?wait=30").json["state"] as? String == "cancelled")
                }
            }
        }
        try await origin.stop()
    }

    @Test func waitingEndsWithItsTime() async throws {
        try await GatewayFixture.with { fixture in
            try await fixture.withGateway({ $0.jobs.longestWait = .milliseconds(300) }) { (ask: Asking) async throws in
                #expect(try await ask(.post, "/v1/jobs", #"{"id":"a","source":"initials:J","width":8}"#).status == 202)
                #expect(try await ask(.get, "/v1/jobs/a?wait=0.1").json["state"] as? String == "accepted")
                #expect(try await ask(.get, "/v1/jobs/a?wait=1000").json["state"] as? String == "accepted")
                #expect(try await ask(.get, "/v1/jobs/b?wait=0").status == 404)
                #expect(try await ask(.get, "/v1/jobs/b").status == 404)
                for (wait, status) in [("1e300", 200), ("x", 400), ("inf", 400), ("0x1p900", 400)] {
                    #expect(try await ask(.get, "/v1/jobs/a?wait=\(wait)").status == status)
                }
            }
        }
    }

    @Test func jobsThatCameByKafkaLeaveNothingBehind() {
        let event =
            #"{"specversion":"1.0","id":"1","type":"halcyon.image.cancelled","source":"x","data":{"job":{"id":"a"}}}"#
        let memory = JobStateStore.state(after: DecodedEvent(json: Array(event.utf8))!, Array(event.utf8))
        #expect(String(decoding: memory, as: UTF8.self) == #"{"id":"a","state":"cancelled","event":\#(event)}"#)
    }
}
