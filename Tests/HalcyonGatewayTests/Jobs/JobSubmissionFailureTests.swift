import HalcyonCluster
import HalcyonCoding
import HalcyonModel
import Kafka
import Redis
import Telemetry
import TestSupport
import Testing

@testable import HalcyonGateway

/// Jobs rejected with 503 are never published, not even later, and leave the states and owners of jobs as they were.
@Suite(.limitedParallelism) struct JobSubmissionFailureTests {
    /// The time after which a job is not sent any more, if the submission is to fail.
    private static let past = ContinuousClock.now - .seconds(1)

    /// Runs `body` with a submitter for the cluster of a fixture.
    /// - Parameter hasRedis: False for a submitter that cannot reach Redis.
    private static func withSubmitter(
        hasRedis: Bool = true, _ body: (GatewayFixture, JobSubmitter) async throws -> Void
    ) async throws {
        try await GatewayFixture.with { fixture in
            let redis = RedisClient(fixture.endpoint)
            if !hasRedis { await redis.close() }
            let producer = try Producer(properties: fixture.kafka.producer)
            let presets = PresetCatalog([], PresetStore(redis, topics: fixture.topics), log: .silent)
            let submitter = JobSubmitter(
                producer: producer, topics: fixture.topics, reader: JobDecoder(), presets: presets,
                memory: JobStateStore(redis: redis, lifetime: 600, log: .silent),
                batches: BatchStore(redis, BatchOptions()),
                times: (request: .seconds(600), send: .seconds(600)))
            let result: Result<Void, any Error>
            do { result = .success(try await body(fixture, submitter)) } catch { result = .failure(error) }
            await producer.close()
            await redis.close()
            try result.get()
        }
    }

    /// Submits a job in a task of its own.
    /// - Returns: The kind of the problem; nil if the job was accepted.
    private static func submit(
        _ id: String, as name: String = "a", batch: String? = nil, isCancelled: Bool = false,
        by latest: ContinuousClock.Instant? = nil, _ submitter: JobSubmitter
    ) async throws -> Problem.Kind? {
        let membership = batch.map { #","batch":"\#($0)""# } ?? ""
        let job = #"{"id":"\#(id)","source":"initials:J","width":8\#(membership)}"#
        let prepared = try await submitter.prepare(Array(job.utf8))
        let caller = Principal(name: name, leave: .key, mayAdminister: false, scopes: [.submit])
        let task = Task { () async -> Problem.Kind? in
            if isCancelled { withUnsafeCurrentTask { $0?.cancel() } }
            do throws(Problem) {
                try await submitter.submit(prepared, for: caller, traceparent: nil, by: latest)
                return nil
            } catch {
                return error.kind
            }
        }
        return await task.value
    }

    /// Returns the state of a job as text.
    private static func state(of id: String, _ memory: JobStateStore) async throws -> String? {
        try await memory.state(of: id).map { String(decoding: $0, as: UTF8.self) }
    }

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

    /// As after the client has disconnected, or a later line has ended the request.
    @Test func cancelledRequestsCompleteTheirSubmissions() async throws {
        try await Self.withSubmitter { fixture, submitter async throws in
            #expect(try await Self.submit("one", isCancelled: true, submitter) == nil)
            #expect(try await Self.state(of: "one", submitter.memory)?.contains("accepted") == true)
            #expect(try await submitter.memory.isOwned("one", by: "a"))
            // The id belongs to another key.
            #expect(try await Self.submit("one", as: "b", isCancelled: true, submitter) == .conflict)
            #expect(try await Self.submit("two", isCancelled: true, by: Self.past, submitter) == .unavailable)
            #expect(try await Self.state(of: "two", submitter.memory) == nil)
            #expect(try await jobs(fixture, .normal).count == 1)
        }
    }

    /// A gateway cannot reach Redis when the first jobs of a batch are submitted. The workers can.
    @Test func batchesBegunWithoutRedisBelongToTheirFirstKey() async throws {
        try await Self.withSubmitter(hasRedis: false) { fixture, submitter async throws in
            try await fixture.withWorker {
                for name in ["a", "b"] {
                    #expect(try await Self.submit("job-\(name)", as: name, batch: "own", submitter) == nil)
                }
                // The messages about a batch are handled in their order, and this one last.
                let writer = BatchWriter("own", submitter.producer, topics: fixture.topics, reader: JobDecoder())
                try await writer.close(total: 2)
                let key = "halcyon:batch:{own}"
                try await until("the batch is completed") {
                    try await fixture.redis.run("HEXISTS", key, "completedAt").hasPrefix("1")
                }
                let owner = try await fixture.redis.run("HGET", key, "owner")
                #expect(owner.hasPrefix("a"))
            }
        }
    }

    /// A client repeats a job, because it has not received the response, while Kafka is down.
    @Test func failedResubmissionsKeepTheStateOfTheEarlierJob() async throws {
        try await Self.withSubmitter { _, submitter async throws in
            let memory = submitter.memory
            #expect(try await Self.submit("a", submitter) == nil)
            let accepted = try #require(try await Self.state(of: "a", memory))
            #expect(try await Self.submit("a", by: Self.past, submitter) == .unavailable)
            #expect(try await Self.state(of: "a", memory) == accepted)
            let json = Array(#"{"id":"1","type":"halcyon.image.cancelled","data":{"job":{"id":"a"}}}"#.utf8)
            let event = try #require(DecodedEvent(json: json))
            await memory.store(event, json)
            #expect(try await Self.submit("a", by: Self.past, submitter) == .unavailable)
            #expect(try await Self.state(of: "a", memory)?.contains("cancelled") == true)
            // A job that was submitted again has not ended.
            #expect(try await Self.submit("a", submitter) == nil)
            #expect(try await Self.state(of: "a", memory)?.contains("accepted") == true)
        }
    }

    /// The end of the first or the second of two submissions.
    private enum End {
        case firstAccepted, firstFailed, secondAccepted, secondFailed
    }

    /// Two submissions of the same id at the same time.
    @Test(arguments: RedisDeployment.Kind.allCases)
    func aFailureKeepsTheStateOfAnotherSubmission(on kind: RedisDeployment.Kind) async throws {
        let cases: [(ends: [End], isAccepted: Bool)] = [
            ([.secondAccepted, .firstFailed], true), ([.firstFailed, .secondAccepted], true),
            ([.firstAccepted, .secondFailed], true), ([.secondFailed, .firstAccepted], true),
            ([.firstFailed, .secondFailed], false), ([.secondFailed, .firstFailed], false),
        ]
        let server = try await RedisDeployment.start(kind)
        let redis = RedisClient(try RedisEndpoint(server.url))
        let memory = JobStateStore(redis: redis, lifetime: 600, log: .silent)
        for (index, (ends, isAccepted)) in cases.enumerated() {
            let id = "job-\(index)"
            let first = await memory.note(accepted: id)
            let second = await memory.note(accepted: id)
            for end in ends {
                switch end {
                case .firstAccepted: await memory.confirm(id, after: first)
                case .firstFailed: await memory.withdraw(id, after: first)
                case .secondAccepted: await memory.confirm(id, after: second)
                case .secondFailed: await memory.withdraw(id, after: second)
                }
            }
            let state = try await Self.state(of: id, memory)
            let isStored = state?.contains("accepted") == true
            #expect(isStored == isAccepted, "\(ends)")
        }
        await redis.close()
        await server.stop()
    }

    /// The gateway that reports the end of a job stores it before the events are read in their order.
    @Test(arguments: RedisDeployment.Kind.allCases)
    func aLateStartKeepsTheEndOfTheJob(on kind: RedisDeployment.Kind) async throws {
        let server = try await RedisDeployment.start(kind)
        let redis = RedisClient(try RedisEndpoint(server.url))
        let memory = JobStateStore(redis: redis, lifetime: 600, log: .silent)
        func store(_ type: String, at second: Int) async throws {
            let json = Array(
                (#"{"specversion":"1.0","id":"e","type":"halcyon.image.\#(type)","source":"\"time\":\"9\"","#
                    + #""time":"2026-11-28T12:00:0\#(second).000Z","data":{"job":{"id":"a"}}}"#).utf8)
            await memory.store(try #require(DecodedEvent(json: json)), json)
        }
        func isStored(_ type: String) async throws -> Bool {
            try await Self.state(of: "a", memory)?.contains(#""state":"\#(type)""#) == true
        }
        _ = await memory.note(accepted: "a")
        try await store("started", at: 1)
        #expect(try await isStored("started"))
        try await store("failed", at: 3)
        for second in [1, 3] {
            try await store("started", at: second)
            #expect(try await isStored("failed"))
        }
        // It is submitted again.
        try await store("started", at: 4)
        #expect(try await isStored("started"))
        await redis.close()
        await server.stop()
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
