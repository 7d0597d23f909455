import HalcyonCoding
import HalcyonModel
import JSON
import Testing

/// The field `batch` of jobs and events, and messages of the topic `batches`, as docs/batches.md describes them.
@Suite struct BatchCodingTests {
    @Test(
        arguments: [
            (#""summer:1""#, "summer:1", nil), (#"{"id":"a.b-c_d"}"#, "a.b-c_d", nil),
            (#"{"index":0,"id":"a"}"#, "a", 0), (#"{"id":"a","index":9999999}"#, "a", 9_999_999),
            (#"{"id":"a","index":null}"#, "a", nil),
        ] as [(String, String, Int?)])
    func jobsNameTheirBatch(json: String, id: String, index: Int?) throws {
        #expect(try read(#""batch":\#(json)"#).batch == BatchMembership(batch: id, index: index))
    }

    @Test func jobsWithoutABatchBelongToNone() throws {
        #expect(try read(#""batch":null"#).batch == nil)
        #expect(try read(#""width":4"#).batch == nil)
    }

    @Test(arguments: [
        (#""""#, "batch: expected 1 to 128 letters"), (#""a b""#, "batch: expected 1 to 128 letters"),
        (#""é""#, "batch: expected 1 to 128 letters"), ("7", "batch: "), ("[]", "batch: "),
        (#"{"index":1}"#, "batch.id: is missing"), (#"{"id":null}"#, "batch.id: "),
        (#"{"id":"a/b"}"#, "batch.id: expected 1 to 128 letters"), (#"{"id":"a","index":-1}"#, "batch.index: "),
        (#"{"id":"a","index":10000000}"#, "batch.index: "), (#"{"id":"a","index":"1"}"#, "batch.index: "),
        (#"{"id":"a","index":0.5}"#, "batch.index: "),
    ])
    func malformedBatchesAreRejectedWithTheMember(json: String, reason: String) throws {
        let message = try #require(rejection(#""batch":\#(json)"#)).failure.message
        #expect(message.hasPrefix(reason), "\(message)")
    }

    /// The batch counts a job that is invalid for another reason.
    @Test func invalidJobsKeepTheirBatch() throws {
        let rejected = try #require(rejection(#""width":-4,"batch":{"id":"a","index":3}"#))
        #expect(rejected.batch == BatchMembership(batch: "a", index: 3))
        #expect(try #require(rejection(#""width":-4,"batch":"a b""#)).batch == nil)
    }

    @Test func eventsNameTheBatchOfTheirJob() throws {
        for membership in [BatchMembership(batch: "a", index: 7), BatchMembership(batch: "a")] {
            var event = SampleEvents.failed
            event.batch = membership
            #expect(DecodedEvent(json: event.json)?.batch == membership)
        }
        #expect(DecodedEvent(json: SampleEvents.failed.json)?.batch == nil)
        #expect(DecodedEvent(json: SampleEvents.batchCompleted.json) == nil)
    }

    @Test func eventsAreSelectedByTheirAttributes() throws {
        let completed = try #require(EventAttributes(json: SampleEvents.batchCompleted.json))
        #expect(completed.type == "halcyon.batch.completed" && completed.jobID == nil)
        #expect(completed.batch == SampleEvents.batchCompleted.batch.id && completed.subject == completed.batch)
        var failed = SampleEvents.failed
        failed.batch = BatchMembership(batch: "a", index: 7)
        let attributes = try #require(EventAttributes(json: failed.json))
        #expect(attributes.type == "halcyon.image.failed" && attributes.batch == "a" && attributes.jobID != nil)
        for json in ["", "{}", #"{"type":"other","data":{}}"#, #"{"type":"halcyon.image.ready"}"#] {
            #expect(EventAttributes(json: Array(json.utf8)) == nil)
        }
        #expect(EventAttributes.type(named: "ready") == "halcyon.image.ready")
        #expect(EventAttributes.type(named: "halcyon.image.ready") == "halcyon.image.ready")
        #expect(EventAttributes.type(named: "progress") == "halcyon.image.progress")
        #expect(EventAttributes.type(named: "batch.progress") == "halcyon.batch.progress")
        #expect(EventAttributes.type(named: "halcyon.batch.completed") == "halcyon.batch.completed")
        for name in ["", "completed", "batch", "batch.ready", "image.ready.", "halcyon.ready"] {
            #expect(EventAttributes.type(named: name) == nil, "\(name)")
        }
    }

    // MARK: Messages

    static let messages: [(json: String, message: BatchMessage)] = [
        (#"{"batch":"a","open":{"created":1795257067250}}"#, BatchMessage("a", .open(created: 1_795_257_067_250))),
        (
            #"{"batch":"a","open":{"created":7,"tenant":"shop-7","owner":"é k"}}"#,
            BatchMessage("a", .open(created: 7, tenant: "shop-7", owner: "é k"))
        ),
        (
            #"{"batch":"a","open":{"created":7,"webhook":"shop"}}"#,
            BatchMessage("a", .open(created: 7, webhook: try? Webhook("shop")))
        ),
        (#"{"batch":"a","close":{"total":0}}"#, BatchMessage("a", .close(total: 0))),
        (#"{"batch":"a","close":{"total":10000000}}"#, BatchMessage("a", .close(total: 10_000_000))),
        (
            #"{"batch":"a","close":{"total":3,"error":{"code":"too_large","message":"é"}}}"#,
            BatchMessage("a", .close(total: 3, error: BatchError(code: "too_large", message: "é")))
        ),
        (
            #"{"batch":"a","list":{"prefix":"s3://pictures/","template":{"width":8}}}"#,
            BatchMessage("a", .list(BatchListing(.prefix("s3://pictures/"), template: Array(#"{"width":8}"#.utf8))))
        ),
        (
            #"{"batch":"a","list":{"prefix":"s3://pictures/a","template":{},"after":"a/é\u0001","submitted":7}}"#,
            BatchMessage(
                "a",
                .list(
                    BatchListing(
                        .prefix("s3://pictures/a"), template: Array("{}".utf8), after: "a/é\u{1}", submitted: 7)))
        ),
        (#"{"batch":"a","counted":true}"#, BatchMessage("a", .counted)),
        (#"{"batch":"a","cancel":true}"#, BatchMessage("a", .cancel)),
        (
            #"{"batch":"a","completed":{"ready":4,"failed":3,"cancelled":2,"superseded":1}}"#,
            BatchMessage("a", .completed(counts(4, 3, 2, 1)))
        ),
    ]

    private static func counts(_ ready: Int, _ failed: Int, _ cancelled: Int, _ superseded: Int) -> Batch.Counts {
        var counts = Batch.Counts()
        (counts.ready, counts.failed) = (ready, failed)
        (counts.cancelled, counts.superseded) = (cancelled, superseded)
        return counts
    }

    @Test(arguments: messages)
    func roundTripsEachMessage(json: String, message: BatchMessage) throws {
        #expect(try BatchMessage(json: Array(json.utf8)) == message)
        #expect(String(decoding: message.json, as: UTF8.self) == json)
    }

    @Test func ignoresUnknownMembers() throws {
        let json = #"{"v":2,"batch":"a","close":{"total":3,"by":"me"},"note":[1]}"#
        #expect(try BatchMessage(json: Array(json.utf8)) == BatchMessage("a", .close(total: 3)))
        let counts = #"{"batch":"a","completed":{"ready":1,"lost":9}}"#
        #expect(try BatchMessage(json: Array(counts.utf8)) == BatchMessage("a", .completed(Self.counts(1, 0, 0, 0))))
    }

    @Test(arguments: [
        ("", "expected JSON"), ("{", "not well-formed"), ("[]", "expected an object"), ("7", "expected an object"),
        (#"{"batch":"a"}"#, "expected open, list, close"),
        (#"{"batch":"a","drain":true}"#, "expected open, list, close"),
        (#"{"batch":"a","list":{}}"#, "list: expected either prefix"),
        (#"{"batch":"a","list":7}"#, "list: expected an object"),
        (#"{"batch":"a","list":{"prefix":7}}"#, "list.prefix"),
        (#"{"batch":"a","list":{"prefix":"s3://a/","template":7}}"#, "list.template: expected an object"),
        (#"{"batch":"a","list":{"prefix":"s3://a/","submitted":-1}}"#, "list.submitted: expected"),
        (#"{"close":{"total":1}}"#, "batch: is missing"),
        (#"{"batch":"a b","cancel":true}"#, "batch: expected 1 to 128"), (#"{"batch":7,"cancel":true}"#, "batch: "),
        (#"{"batch":"a","close":{}}"#, "close.total: is missing"),
        (#"{"batch":"a","close":7}"#, "close: expected an object"),
        (#"{"batch":"a","close":{"total":-1}}"#, "close.total: expected"),
        (#"{"batch":"a","close":{"total":10000001}}"#, "close.total: expected"),
        (#"{"batch":"a","close":{"total":"1"}}"#, "close.total: expected"), (#"{"batch":"a","open":true}"#, "open"),
        (#"{"batch":"a","open":{"created":-1}}"#, "open.created"),
        (#"{"batch":"a","open":{"created":1,"tenant":"a/b"}}"#, "open.tenant"),
        (#"{"batch":"a","open":{"created":1,"webhook":"https://u:p@x/"}}"#, "open.webhook"),
        (#"{"batch":"a","completed":{"ready":-1}}"#, "completed.ready"), (#"{"batch":"a","completed":1}"#, "completed"),
    ])
    func malformedMessagesAreRejected(json: String, reason: String) {
        #expect {
            try BatchMessage(json: Array(json.utf8))
        } throws: { error in
            "\(error)".contains(reason)
        }
    }

    @Test func failuresSurviveStorage() {
        for index in [nil, 7] {
            let failure = BatchFailure(
                job: "a\u{0}\"é", index: index, code: "not_found", message: "gone\n", record: "halcyon.jobs-3-1042")
            #expect(BatchFailure(json: failure.json) == failure)
        }
        for json in ["", "[]", #"{"job":"a"}"#, #"{"job":1,"code":"timeout"}"#] {
            #expect(BatchFailure(json: Array(json.utf8)) == nil)
        }
    }

    @Test func batchesReportTheirState() {
        var batch = Batch(id: "a", created: 0)
        #expect(batch.state == .open && !batch.isDone)
        batch.prefix = "s3://pictures/"
        #expect(batch.state == .listing && !batch.isDone)
        batch.total = 2
        #expect(batch.state == .running && !batch.isDone)
        batch.cancelled = 1
        #expect(batch.state == .cancelling)
        (batch.counts.ready, batch.counts.cancelled) = (1, 1)
        #expect(batch.isDone)
        batch.completed = 2
        #expect(batch.state == .completed)
    }
}
