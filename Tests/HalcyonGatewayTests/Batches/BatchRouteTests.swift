import Curl
import Formats
import Foundation
import HalcyonModel
import Redis
import TestSupport
import Testing

@testable import HalcyonGateway

/// `/v1/batches`, in a whole cluster.
@Suite(.limitedParallelism) struct BatchRouteTests {
    private static let lines: HTTPFields = ["Content-Type": "application/x-ndjson"]

    private static let keys = AccessOptions.with {
        $0.keys = [
            APIKey(name: "a", secret: "a-secret", scopes: [.submit, .read]),
            APIKey(name: "b", secret: "b-secret", scopes: [.submit, .read]),
            APIKey(name: "reader", secret: "r-secret", scopes: [.read]),
            APIKey(name: "chief", secret: "c-secret", scopes: [.admin]),
        ]
    }

    /// The response of an object store to a request for a list.
    private static let listOfOneObject = RawOrigin.answer(
        "200 OK", [],
        "<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>a/1.gif</Key><Size>7</Size></Contents>"
            + "</ListBucketResult>")

    private static func jobs(_ count: Int, from first: Int = 0) -> String {
        (first..<first + count).map { #"{"source":"initials:A","width":\#(8 + $0)}"# + "\n" }.joined()
    }

    /// Runs `body` with a worker and a gateway.
    private static func withCluster(
        _ change: (inout GatewayOptions) -> Void = { _ in },
        _ body: (GatewayFixture, GatewayClient) async throws -> Void
    ) async throws {
        try await GatewayFixture.with { fixture in
            try await fixture.withWorker {
                try await fixture.withGateway(change) { (client: GatewayClient) async throws in
                    try await body(fixture, client)
                }
            }
        }
    }

    /// Waits until a batch is completed.
    @discardableResult
    private static func completed(
        _ id: String, _ client: GatewayClient, headers: HTTPFields = [:]
    ) async throws -> [String: Any] {
        try await until("the batch is completed") {
            try await client.send(.get, "/v1/batches/\(id)", headers: headers).json["state"] as? String == "completed"
        }
        return try await client.send(.get, "/v1/batches/\(id)", headers: headers).json
    }

    private static func counts(_ batch: [String: Any]) -> [String: Int] { batch["counts"] as? [String: Int] ?? [:] }

    private static func expectProblem(_ answer: HTTPResponse, _ status: Int, _ detail: String) {
        #expect(answer.status == status && answer.headers["Content-Type"] == "application/problem+json")
        #expect((answer.json["detail"] as? String)?.contains(detail) == true, "\(answer.text)")
    }

    @Test func createsABatchOfLinesAndListsInvalidOnes() async throws {
        try await Self.withCluster { _, client in
            let body =
                Self.jobs(2) + "\n" + #"{"source":"initials:B","width":-1}"# + "\n{\n"
                + #"{"source":"initials:C","width":9,"batch":"x"}"# + "\n"
                + #"{"id":"own","source":"file:///nowhere.png","width":9}"# + "\n"
            let answer = try await client.send(
                .post, "/v1/batches?id=ab.c&tenant=shop-7&deadline=600&webhook=shop", body, headers: Self.lines)
            #expect(answer.status == 202 && answer.headers["Location"] == "/v1/batches/ab.c")
            #expect(answer.json["id"] as? String == "ab.c" && answer.json["status"] as? String == "/v1/batches/ab.c")
            #expect(answer.json["accepted"] as? Int == 3 && answer.json["rejected"] as? Int == 3)
            let problems = try #require(answer.json["problems"] as? [[String: Any]])
            #expect(problems.map { $0["line"] as? Int } == [4, 5, 6])
            let kinds = problems.map { ($0["problem"] as? [String: Any])?["type"] as? String }
            #expect(kinds == Array(repeating: "/problems/invalid-job", count: 3))

            let batch = try await Self.completed("ab.c", client)
            #expect(batch["webhook"] == nil)
            #expect(batch["total"] as? Int == 3 && batch["ended"] as? Int == 3)
            #expect(batch["tenant"] as? String == "shop-7")
            #expect(Self.counts(batch) == ["ready": 2, "failed": 1, "cancelled": 0, "superseded": 0])
            let failures = try await client.send(.get, try #require(batch["failures"] as? String))
            #expect(failures.status == 200 && failures.json["failed"] as? Int == 1 && failures.json["next"] == nil)
            let failure = try #require((failures.json["failures"] as? [[String: Any]])?.first)
            // Invalid lines have an index too.
            #expect(failure["job"] as? String == "own" && failure["index"] as? Int == 5)
            #expect((failure["record"] as? String)?.hasPrefix("halcyon.jobs-") == true)
        }
    }

    @Test func createsABatchOfATemplateAndSources() async throws {
        try await Self.withCluster { _, client in
            let body = #"{"template":{"width":8,"height":8,"format":"webp"},"sources":["initials:A",{"initials":"B"}]}"#
            let answer = try await client.send(.post, "/v1/batches?priority=high", body)
            #expect(answer.status == 202 && answer.json["accepted"] as? Int == 2)
            let id = try #require(answer.json["id"] as? String)
            #expect(id.hasPrefix("batch-"))
            // It is known before a worker has handled it.
            #expect(try await client.send(.get, "/v1/batches/\(id)").status == 200)
            #expect(Self.counts(try await Self.completed(id, client))["ready"] == 2)
            let list = try await client.send(.get, "/v1/batches?limit=1").json["batches"] as? [[String: Any]]
            #expect(list?.map { $0["id"] as? String } == [id])
            // Invalid sources are listed by their positions.
            let other = try await client.send(
                .post, "/v1/batches?id=problems",
                #"{"template":{"width":8},"sources":["initials:A",7,"gopher://x/"]}"#)
            #expect(other.status == 202 && other.json["rejected"] as? Int == 2)
            let problems = try #require(other.json["problems"] as? [[String: Any]])
            #expect(problems.map { $0["line"] as? Int } == [2, 3])
            #expect((problems[1]["problem"] as? [String: Any])?["code"] as? String == "unsupported_source")
        }
    }

    /// As after a lost connection: the first request is repeated.
    @Test func continuesAnOpenBatch() async throws {
        try await Self.withCluster { _, client in
            for _ in 0..<2 {
                let part = try await client.send(
                    .post, "/v1/batches?id=open&close=false", Self.jobs(3), headers: Self.lines)
                #expect(part.status == 202 && part.json["accepted"] as? Int == 3)
            }
            let open = try await client.send(.get, "/v1/batches/open").json
            #expect(open["state"] as? String == "open" && open["total"] == nil)
            let rest = try await client.send(
                .post, "/v1/batches?id=open&first=3", Self.jobs(2, from: 3), headers: Self.lines)
            #expect(rest.status == 202)
            let batch = try await Self.completed("open", client)
            #expect(batch["total"] as? Int == 5 && Self.counts(batch)["ready"] == 5)
            let again = try await client.send(.post, "/v1/batches?id=open", Self.jobs(1), headers: Self.lines)
            Self.expectProblem(again, 409, "is closed")
        }
    }

    @Test func closesABatch() async throws {
        try await Self.withCluster { _, client in
            _ = try await client.send(.post, "/v1/batches?id=c&close=false", Self.jobs(2), headers: Self.lines)
            for body in ["", "{}", #"{"total":-1}"#, #"{"total":10000001}"#, #"{"total":"2"}"#] {
                Self.expectProblem(try await client.send(.post, "/v1/batches/c/close", body), 400, "invalid request")
            }
            let text = try await client.send(
                .post, "/v1/batches/c/close", #"{"total":2}"#, headers: ["Content-Type": "text/plain"])
            #expect(text.status == 415)
            let closed = try await client.send(.post, "/v1/batches/c/close", #"{"total":2}"#)
            #expect(closed.status == 202 && closed.json["total"] as? Int == 2)
            #expect(Self.counts(try await Self.completed("c", client))["ready"] == 2)
            // Closing again has no effect.
            #expect(try await client.send(.post, "/v1/batches/c/close", #"{"total":2}"#).status == 202)
            Self.expectProblem(try await client.send(.post, "/v1/batches/c/close", #"{"total":3}"#), 409, "2 jobs")
        }
    }

    /// The gateway has no access to the object store.
    @Test func createsABatchOfAPrefixThatAWorkerLists() async throws {
        let store = RawOrigin { _ in Self.listOfOneObject }
        try await GatewayFixture.with { fixture in
            try await fixture.withWorker({ $0.sources.s3.endpoint = try? WebURL("\(store.url("/"))") }) {
                try await fixture.withGateway { (client: GatewayClient) async throws in
                    let body = #"{"template":{"width":8,"height":8},"prefix":"s3://pictures/a/"}"#
                    let answer = try await client.send(.post, "/v1/batches?id=p&priority=low&tenant=shop-7", body)
                    #expect(answer.status == 202 && answer.headers["Location"] == "/v1/batches/p")
                    #expect(Set(answer.json.keys) == ["id", "prefix", "status"])
                    #expect(answer.json["prefix"] as? String == "s3://pictures/a/")
                    let batch = try await Self.completed("p", client)
                    #expect(batch["prefix"] as? String == "s3://pictures/a/" && batch["tenant"] as? String == "shop-7")
                    // The bytes are no picture.
                    #expect(batch["total"] as? Int == 1 && Self.counts(batch)["failed"] == 1)
                    Self.expectProblem(try await client.send(.post, "/v1/batches?id=p", body), 409, "closed")
                    _ = try await client.send(
                        .post, "/v1/batches?id=q&close=false", #"{"template":{"width":8},"sources":["initials:A"]}"#)
                    Self.expectProblem(try await client.send(.post, "/v1/batches?id=q", body), 409, "other jobs")
                    for (query, body, reason) in [
                        ("close=false", body, "close and first"), ("first=3", body, "close and first"),
                        ("", #"{"prefix":"s3://pictures/a/","sources":["initials:A"]}"#, "exclude each other"),
                        ("", #"{"prefix":"https://pictures/a/"}"#, "prefix: "), ("", #"{"prefix":7}"#, "prefix: "),
                        ("", #"{"prefix":"s3://pictures/a/","template":{"width":-1}}"#, "width: "),
                    ] {
                        Self.expectProblem(
                            try await client.send(.post, "/v1/batches?id=r&\(query)", body), 400, reason)
                    }
                    #expect(try await client.send(.get, "/v1/batches/r").status == 404)
                }
            }
        }
        try await store.stop()
    }

    @Test func cancelsABatch() async throws {
        let origin = RawOrigin { _ in [.text("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nabc"), .awaitEnd] }
        try await Self.withCluster { _, client in
            let sources = (0..<3).map { #""\#(origin.url("/\($0)"))""# }.joined(separator: ",")
            let created = try await client.send(
                .post, "/v1/batches?id=c", #"{"template":{"width":8},"sources":["initials:A",\#(sources)]}"#)
            #expect(created.status == 202)
            let answer = try await client.send(.delete, "/v1/batches/c")
            #expect(answer.status == 202 && answer.json["state"] as? String == "cancelling")
            let batch = try await Self.completed("c", client)
            #expect(batch["cancelledAt"] != nil && (Self.counts(batch)["cancelled"] ?? 0) >= 3)
            #expect(batch["ended"] as? Int == 4)
            Self.expectProblem(try await client.send(.delete, "/v1/batches/c"), 409, "completed")
        }
        try await origin.stop()
    }

    @Test func retriesFailedJobs() async throws {
        let folder = TemporaryFolder("retry")
        try await GatewayFixture.with { fixture in
            try await fixture.withWorker({ $0.sources.fileRoots = [folder.path] }) {
                try await fixture.withGateway { (client: GatewayClient) async throws in
                    let sources = (0..<3).map { #""file://\#(folder.path)/\#($0).svg""# }.joined(separator: ",")
                    _ = try await client.send(
                        .post, "/v1/batches?id=r&close=false", #"{"template":{"width":8},"sources":[\#(sources)]}"#)
                    Self.expectProblem(try await client.send(.post, "/v1/batches/r/retry"), 409, "not completed")
                    _ = try await client.send(.post, "/v1/batches/r/close", #"{"total":3}"#)
                    #expect(Self.counts(try await Self.completed("r", client))["failed"] == 3)
                    // Failures are listed by pages.
                    let first = try await client.send(.get, "/v1/batches/r/failures?limit=2").json
                    #expect((first["failures"] as? [Any])?.count == 2)
                    #expect(first["next"] as? String == "/v1/batches/r/failures?start=2&limit=2")
                    let second = try await client.send(.get, "/v1/batches/r/failures?start=2&limit=2").json
                    #expect((second["failures"] as? [Any])?.count == 1 && second["next"] == nil)

                    for index in 0..<2 {
                        _ = folder.write(
                            #"<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>"#.utf8, to: "\(index).svg")
                    }
                    let retry = try await client.send(.post, "/v1/batches/r/retry?priority=high")
                    #expect(retry.status == 202 && retry.json["accepted"] as? Int == 3)
                    let id = try #require(retry.json["id"] as? String)
                    #expect(id.hasPrefix("r-retry-"))
                    let batch = try await Self.completed(id, client)
                    #expect(Self.counts(batch)["ready"] == 2 && Self.counts(batch)["failed"] == 1)
                    let named = try await client.send(.post, "/v1/batches/\(id)/retry?id=again")
                    #expect(named.status == 202 && named.json["id"] as? String == "again")
                }
            }
        }
        await folder.remove()
    }

    @Test func onlyFailedJobsAreRetried() async throws {
        try await Self.withCluster { _, client in
            _ = try await client.send(.post, "/v1/batches?id=good", Self.jobs(1), headers: Self.lines)
            try await Self.completed("good", client)
            Self.expectProblem(
                try await client.send(.post, "/v1/batches/good/retry"), 409, "no job of the batch failed")
            let failures = try await client.send(.get, "/v1/batches/good/failures")
            #expect(failures.json["failed"] as? Int == 0 && (failures.json["failures"] as? [Any])?.isEmpty == true)
        }
    }

    /// A key cannot change batches of another key or add jobs to them. A key with the scope `admin` can change all.
    @Test func batchesBelongToTheKeyThatCreatedThem() async throws {
        @Sendable func key(_ secret: String, _ type: String = "application/json") -> HTTPFields {
            ["X-API-Key": secret, "Content-Type": type]
        }
        try await Self.withCluster({ $0.access = Self.keys }) { _, client in
            let lines = "application/x-ndjson"
            let path = "/v1/batches?id=mine&close=false"
            #expect(
                try await client.send(.post, path, Self.jobs(1), headers: key("r-secret", lines)).status == 403)
            #expect(
                try await client.send(.post, path, Self.jobs(1), headers: key("a-secret", lines)).status == 202)
            // At once, and when a worker has handled it.
            for _ in 0..<2 {
                let foreign = try await client.send(.post, path, Self.jobs(1), headers: key("b-secret", lines))
                Self.expectProblem(foreign, 409, "another key")
                for (method, path) in [
                    (HTTPRequest.Method.delete, ""), (.post, "/close"), (.post, "/retry"),
                ] {
                    let answer = try await client.send(
                        method, "/v1/batches/mine\(path)", #"{"total":1}"#, headers: key("b-secret"))
                    Self.expectProblem(answer, 403, "has not created the batch")
                }
                try await until("the job is counted") {
                    try await client.send(.get, "/v1/batches/mine", headers: key("r-secret")).json["ended"] as? Int == 1
                }
            }
            #expect(
                try await client.send(.post, "/v1/batches/mine/close", #"{"total":1}"#, headers: key("c-secret")).status
                    == 202)
            try await Self.completed("mine", client, headers: key("r-secret"))
        }
    }

    /// After a loss of Redis, the ends of jobs are counted before the messages about their batch are read again.
    @Test func batchesWhoseOwnerIsNotKnownYetAreChangedLater() async throws {
        try await GatewayFixture.with { fixture in
            try await fixture.withGateway({ $0.access = Self.keys }) { (client: GatewayClient) async throws in
                let redis = RedisClient(fixture.endpoint)
                _ = try await redis.send("HSET", "halcyon:batch:{lost}", "ready", "1", "counted", "5")
                let changes: [(HTTPRequest.Method, String)] = [(.delete, ""), (.post, "/close"), (.post, "/retry")]
                func change(as secret: String) async throws -> [HTTPResponse] {
                    var answers: [HTTPResponse] = []
                    for (method, path) in changes {
                        answers.append(
                            try await client.send(
                                method, "/v1/batches/lost\(path)", #"{"total":1}"#,
                                headers: ["X-API-Key": secret, "Content-Type": "application/json"]))
                    }
                    return answers
                }
                for answer in try await change(as: "a-secret") {
                    Self.expectProblem(answer, 503, "the owner of the batch is not known")
                    #expect(answer.headers["Retry-After"] == "2")
                }
                _ = try await redis.send("HSET", "halcyon:batch:{lost}", "created", "5", "owner", "b")
                for answer in try await change(as: "a-secret") {
                    Self.expectProblem(answer, 403, "has not created the batch")
                }
                #expect(try await change(as: "b-secret").map(\.status) == [202, 202, 409])
                await redis.close()
            }
        }
    }

    /// Neither ids in jobs nor ids that are made from that of the batch.
    @Test func jobsDoNotTakeTheIDsOfAnotherKey() async throws {
        try await GatewayFixture.with { fixture in
            try await fixture.withGateway({ $0.access = Self.keys }) { (client: GatewayClient) async throws in
                let a: HTTPFields = ["X-API-Key": "a-secret"]
                let lines: HTTPFields = ["X-API-Key": "b-secret", "Content-Type": "application/x-ndjson"]
                for id in ["own", "hero-1"] {
                    let job = #"{"id":"\#(id)","source":"initials:A","width":8}"#
                    #expect(try await client.send(.post, "/v1/jobs", job, headers: a).status == 202)
                }
                let foreign = #"{"id":"own","source":"initials:B","width":9}"# + "\n"
                let batch = try await client.send(
                    .post, "/v1/batches?id=hero", Self.jobs(2) + foreign, headers: lines)
                #expect(batch.status == 202 && batch.json["accepted"] as? Int == 1)
                let problems = try #require(batch.json["problems"] as? [[String: Any]])
                #expect(problems.map { $0["line"] as? Int } == [2, 3])
                let kinds = problems.map { ($0["problem"] as? [String: Any])?["type"] as? String }
                #expect(kinds == ["/problems/conflict", "/problems/conflict"])
                let none = try await client.send(.post, "/v1/batches?id=other", foreign, headers: lines)
                Self.expectProblem(none, 409, "line 1: another key")
                let listed = try await client.send(
                    .post, "/v1/batches?id=listed", #"{"template":{"id":"own","width":8},"prefix":"s3://pictures/a/"}"#,
                    headers: ["X-API-Key": "b-secret"])
                Self.expectProblem(listed, 409, "another key")
                #expect(try await fixture.values(in: fixture.topics.jobs(.normal)).count == 3)
                // The jobs of a batch belong to its key.
                let job = #"{"id":"hero-0","source":"initials:A","width":8}"#
                #expect(try await client.send(.post, "/v1/jobs", job, headers: a).status == 409)
            }
        }
    }

    @Test func jobsAreNotAddedToBatchesOfAnotherKey() async throws {
        try await GatewayFixture.with { fixture in
            try await fixture.withGateway({ $0.access = Self.keys }) { (client: GatewayClient) async throws in
                let lines: HTTPFields = ["X-API-Key": "a-secret", "Content-Type": "application/x-ndjson"]
                #expect(
                    try await client.send(.post, "/v1/batches?id=own&close=false", Self.jobs(1), headers: lines).status
                        == 202)
                func add(_ key: String, to batch: String) async throws -> HTTPResponse {
                    let job = #"{"source":"initials:B","width":9,"batch":"\#(batch)"}"#
                    return try await client.send(.post, "/v1/jobs", job, headers: ["X-API-Key": key])
                }
                Self.expectProblem(try await add("b-secret", to: "own"), 409, "another key")
                for (key, batch) in [("a-secret", "own"), ("c-secret", "own"), ("b-secret", "unknown")] {
                    #expect(try await add(key, to: batch).status == 202)
                }
            }
        }
    }

    /// Submits a job of a batch.
    private static func add(
        _ index: Int, to batch: String, _ client: GatewayClient, key: String? = nil
    ) async throws -> HTTPResponse {
        try await client.send(
            .post, "/v1/jobs", job(index, of: batch), headers: key.map { ["X-API-Key": $0] } ?? [:])
    }

    private static func job(_ index: Int, of batch: String) -> String {
        #"{"source":"initials:A","width":8,"batch":{"id":"\#(batch)","index":\#(index)}}"#
    }

    /// Waits until some jobs of a batch have ended.
    private static func ended(_ count: Int, of batch: String, _ client: GatewayClient) async throws {
        try await until("the jobs are counted") {
            let state = try await client.send(.get, "/v1/batches/\(batch)", headers: ["X-API-Key": "r-secret"])
            return state.json["ended"] as? Int == count
        }
    }

    /// Also if the job has ended before the next one is submitted.
    @Test func theFirstJobOfABatchCreatesItForItsKey() async throws {
        try await Self.withCluster({ $0.access = Self.keys }) { _, client in
            for index in 0..<2 {
                #expect(try await Self.add(index, to: "own", client, key: "a-secret").status == 202)
                try await Self.ended(index + 1, of: "own", client)
            }
            Self.expectProblem(try await Self.add(2, to: "own", client, key: "b-secret"), 409, "by another key")
            let closed = try await client.send(
                .post, "/v1/batches/own/close", #"{"total":2}"#, headers: ["X-API-Key": "a-secret"])
            #expect(closed.status == 202)
            try await Self.completed("own", client, headers: ["X-API-Key": "r-secret"])
        }
    }

    @Test func onlyAdministratorsAddJobsToBatchesWithoutAnOwner() async throws {
        try await Self.withCluster({ $0.access = Self.keys }) { fixture, client in
            // A gateway without keys sends jobs as other producers do.
            try await fixture.withGateway { (open: GatewayClient) async throws in
                #expect(try await Self.add(0, to: "free", open).status == 202)
            }
            try await Self.ended(1, of: "free", client)
            // The answer is 503 until the owner is known.
            let added = try await client.sendUntilAvailable(
                .post, "/v1/jobs", Self.job(1, of: "free"), headers: ["X-API-Key": "a-secret"])
            Self.expectProblem(added, 409, "through Kafka or the command line; adding jobs to it needs the scope admin")
            #expect(try await Self.add(1, to: "free", client, key: "c-secret").status == 202)
            let created = try await client.send(
                .post, "/v1/batches?id=free", Self.jobs(1),
                headers: ["X-API-Key": "a-secret", "Content-Type": "application/x-ndjson"])
            Self.expectProblem(created, 409, "through Kafka or the command line; use a different id")
            // A gateway that does not find the batch in Redis begins one, until the workers have counted it again.
            _ = try await fixture.redis.run("FLUSHALL")
            try await until("the batch has no owner") {
                try await Self.add(2, to: "free", client, key: "a-secret").status == 409
            }
        }
    }

    /// As after a loss of Redis: jobs are counted before the workers have read the first message about the batch.
    @Test func onlyAdministratorsAddJobsToBatchesWhoseOwnerIsUnknown() async throws {
        try await GatewayFixture.with { fixture in
            _ = try await fixture.redis.run("HSET", "halcyon:batch:{lost}", "ended", "1")
            try await fixture.withGateway({ $0.access = Self.keys }) { (client: GatewayClient) async throws in
                Self.expectProblem(try await Self.add(1, to: "lost", client, key: "a-secret"), 503, "owner")
                let lines: HTTPFields = ["X-API-Key": "a-secret", "Content-Type": "application/x-ndjson"]
                let created = try await client.send(.post, "/v1/batches?id=lost", Self.jobs(1), headers: lines)
                Self.expectProblem(created, 503, "owner")
                #expect(try await Self.add(1, to: "lost", client, key: "c-secret").status == 202)
            }
        }
    }

    /// The jobs have the id in the template of the batch.
    @Test func keysCancelJobsThatAWorkerListsForThem() async throws {
        let store = RawOrigin { request in
            request.path.contains("list-type=2")
                ? Self.listOfOneObject : [.text("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nabc"), .awaitEnd]
        }
        let key: HTTPFields = ["X-API-Key": "a-secret"]
        try await GatewayFixture.with { fixture in
            try await fixture.withWorker({ $0.sources.s3.endpoint = try? WebURL("\(store.url("/"))") }) {
                try await fixture.withGateway({ $0.access = Self.keys }) { (client: GatewayClient) async throws in
                    let body = #"{"template":{"id":"one","width":8},"prefix":"s3://pictures/a/"}"#
                    let created = try await client.send(.post, "/v1/batches?id=p", body, headers: key)
                    #expect(created.status == 202)
                    try await until("the transfer has started") {
                        store.requests.contains { !$0.path.contains("list-type=2") }
                    }
                    #expect(try await client.send(.delete, "/v1/jobs/one", headers: key).status == 202)
                    let batch = try await Self.completed("p", client, headers: key)
                    #expect(Self.counts(batch)["cancelled"] == 1)
                }
            }
        }
        try await store.stop()
    }

    @Test func retriedJobsRemainThoseOfTheKeyThatCreatedTheBatch() async throws {
        try await Self.withCluster({ $0.access = Self.keys }) { _, client in
            let (a, chief): (HTTPFields, HTTPFields) = (["X-API-Key": "a-secret"], ["X-API-Key": "c-secret"])
            let body = #"{"template":{"width":8},"sources":["file:///nowhere.png"]}"#
            #expect(try await client.send(.post, "/v1/batches?id=r", body, headers: a).status == 202)
            try await Self.completed("r", client, headers: a)
            let retry = try await client.send(.post, "/v1/batches/r/retry", "{}", headers: chief)
            #expect(retry.status == 202 && retry.json["accepted"] as? Int == 1)
            #expect(try await client.send(.delete, "/v1/jobs/r-0", headers: a).status == 202)
        }
    }

    @Test func unknownBatchesAreNotFound() async throws {
        try await GatewayFixture.with { fixture in
            try await fixture.withGateway { (client: GatewayClient) async throws in
                for (method, path) in [
                    (HTTPRequest.Method.get, "none"), (.get, "none/failures"), (.delete, "none"), (.post, "none/close"),
                    (.post, "none/retry"), (.get, "a%20b"), (.get, "a%2Fb"),
                ] {
                    let answer = try await client.send(method, "/v1/batches/\(path)", #"{"total":1}"#)
                    Self.expectProblem(answer, 404, "unknown batch")
                }
                let list = try await client.send(.get, "/v1/batches")
                #expect(list.status == 200 && list.text == #"{"batches":[]}"#)
            }
        }
    }

    @Test func rejectsInvalidRequests() async throws {
        try await GatewayFixture.with { fixture in
            try await fixture.withGateway { (client: GatewayClient) async throws in
                for query in [
                    "id=a%20b", "id=", "close=yes", "first=-1", "first=10000000", "first=x", "tenant=a%2Fb",
                    "priority=urgent", "deadline=soon", "deadline=inf", "deadline=nan", "deadline=0x8", "deadline=-1",
                    "deadline=", "webhook=", "webhook=https://u:p@example.org/",
                ] {
                    let answer = try await client.send(
                        .post, "/v1/batches?\(query)", Self.jobs(1), headers: Self.lines)
                    #expect(answer.status == 400, "\(query)")
                    #expect(answer.headers["Content-Type"] == "application/problem+json", "\(query)")
                }
                for query in ["limit=0", "limit=1001", "limit=x"] {
                    #expect(try await client.send(.get, "/v1/batches?\(query)").status == 400, "\(query)")
                }
                for body in [
                    "", "[]", "{}", #"{"sources":[]}"#, #"{"sources":"initials:A"}"#, #"{"source":["initials:A"]}"#,
                    #"{"template":7,"sources":["initials:A"]}"#,
                ] {
                    Self.expectProblem(try await client.send(.post, "/v1/batches", body), 400, "invalid batch")
                }
                let text = try await client.send(
                    .post, "/v1/batches", Self.jobs(1), headers: ["Content-Type": "text/plain"])
                Self.expectProblem(text, 415, "application/x-ndjson")
            }
        }
    }

    /// The request can be corrected and repeated with the same id.
    @Test func requestsWithoutAValidJobLeaveTheBatchOpen() async throws {
        try await Self.withCluster { _, client in
            let wrong = try await client.send(
                .post, "/v1/batches?id=v", "\n" + #"{"width":8}"# + "\n{\n", headers: Self.lines)
            Self.expectProblem(wrong, 400, "no job was accepted; line 2")
            #expect(wrong.json["code"] as? String == "invalid_job")
            let empty = try await client.send(.post, "/v1/batches?id=v", "\n", headers: Self.lines)
            Self.expectProblem(empty, 400, "the request has no jobs")
            let right = try await client.send(.post, "/v1/batches?id=v", Self.jobs(2), headers: Self.lines)
            #expect(right.status == 202)
            #expect(Self.counts(try await Self.completed("v", client))["ready"] == 2)
        }
    }

    @Test func limitsTheJobsOfARequest() async throws {
        try await Self.withCluster({ $0.jobs.linesAtOnce = 3 }) { _, client in
            let lines = try await client.send(.post, "/v1/batches?id=m", Self.jobs(4), headers: Self.lines)
            Self.expectProblem(lines, 413, "more than 3 jobs")
            // The batch remains open.
            #expect(try await client.send(.get, "/v1/batches/m").json["state"] as? String == "open")
            let rest = try await client.send(
                .post, "/v1/batches?id=m&first=3", Self.jobs(1, from: 3), headers: Self.lines)
            #expect(rest.status == 202)
            #expect(Self.counts(try await Self.completed("m", client))["ready"] == 4)
            let sources = Array(repeating: #""initials:A""#, count: 4).joined(separator: ",")
            let template = try await client.send(
                .post, "/v1/batches?id=n", #"{"template":{"width":8},"sources":[\#(sources)]}"#)
            Self.expectProblem(template, 413, "more than 3 jobs")
            #expect(try await client.send(.get, "/v1/batches/n").status == 404)
        }
    }
}
