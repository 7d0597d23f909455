import HalcyonModel
import Kafka
import Testing

@testable import HalcyonCluster

@Suite struct RetryMessageTests {
    static let topics = Topics()
    static let record = ConsumedRecord(
        topic: "halcyon.jobs.high", partition: 3, offset: 1042, timestamp: 1_795_257_067_000, key: [1, 0, 255],
        value: Array(#"{"id":"a"}"#.utf8),
        headers: [RecordHeader("traceparent", "00-1-2-3"), RecordHeader("empty", nil), RecordHeader("halcyon-x", "y")])

    static var history: AttemptHistory {
        var history = AttemptHistory(began: 1_795_257_067_100)
        history.add(JobError(.httpError, "the origin answered \"503\"\n"), at: 1_795_257_067_200)
        history.add(JobError(.timeout, "too slow \u{1F600}"), at: 1_795_257_068_300)
        return history
    }

    static var message: RetryMessage {
        RetryMessage(
            provenance: OriginalRecord(record), history: history, due: 1_795_257_078_000, hasStarted: true,
            uploads: [0: "9f86d081884c7d65", 12: "60303ae22b998861"])
    }

    /// The record as it is consumed from the topic.
    static func consumed(_ record: ProducerRecord) -> ConsumedRecord {
        ConsumedRecord(
            topic: record.topic, partition: 0, offset: 5, timestamp: 1_795_257_068_400, key: record.key,
            value: record.value, headers: record.headers)
    }

    @Test func roundTripsThroughItsRecord() throws {
        let produced = Self.message.record(of: Self.record, to: Self.topics.retries[0])
        #expect(produced.topic == "halcyon.retry.10s" && produced.partition == nil)
        #expect(produced.key == Self.record.key && produced.value == Self.record.value)
        #expect(produced.headers.prefix(3) == Self.record.headers[...])
        let found = try RetryMessage(Self.consumed(produced))
        #expect(found == Self.message)
        #expect(found.provenance.coordinates == "halcyon.jobs.high-3-1042")
        #expect(found.provenance.submitted == 1_795_257_067_000)
    }

    @Test func ignoresMalformedUploads() throws {
        for (text, uploads) in [
            ("", [:]), ("0", [:]), ("a=b", [:]), ("0=", [:]), ("1=2=3", [:]), ("0=a,,x,3=b", [0: "a", 3: "b"]),
        ] {
            var record = Self.consumed(Self.message.record(of: Self.record, to: Self.topics.retries[0]))
            record.headers = record.headers.filter { $0.name != "halcyon-uploaded" }
            #expect(try RetryMessage(record).uploads.isEmpty)
            record.headers.append(RecordHeader("halcyon-uploaded", text))
            #expect(try RetryMessage(record).uploads == uploads, "\(text)")
        }
    }

    @Test func secondRetryReplacesItsHeaders() throws {
        let first = Self.consumed(Self.message.record(of: Self.record, to: Self.topics.retries[0]))
        var message = try RetryMessage(first)
        message.history.add(JobError(.internal, "again"), at: 1_795_257_079_000)
        let second = message.record(of: first, to: Self.topics.retries[1])
        #expect(
            second.headers.count == first.headers.count && Set(second.headers.map(\.name)).count == second.headers.count
        )
        #expect(try RetryMessage(Self.consumed(second)).history.count == 3)
        #expect(second.headers.unmoved == Self.record.headers)
    }

    @Test func overwritesRetryHeadersOfProducers() {
        var record = Self.record
        record.headers.append(RecordHeader("halcyon-due", "0"))
        #expect(Self.message.record(of: record, to: "t").headers.count { $0.name == "halcyon-due" } == 1)
    }

    @Test(
        arguments: HalcyonHeader.allCases.filter {
            ![.started, .uploaded, .code, .message, .reason, .cut].contains($0)
        },
        [nil, "", "-1", "x"]
    ) func rejectsMalformedHeaders(header: HalcyonHeader, text: String?) {
        var record = Self.consumed(Self.message.record(of: Self.record, to: Self.topics.retries[0]))
        record.headers.removeAll { $0.name == header.name }
        if let text { record.headers.append(header.with(text)) }
        // Any text is accepted as a topic. The worker checks that it is a lane.
        if header == .topic, text?.isEmpty == false { return }
        let failure = #expect(throws: JobError.self) { try RetryMessage(record) }
        #expect(failure?.code == .invalidJob && failure?.message.contains("retry message") == true)
    }

    @Test(arguments: [#"[{"code":"timeout"}]"#, "{}", "[1]", #"[{"time":"x","code":"timeout","message":""}]"#, "["])
    func rejectsMalformedHistory(json: String) {
        var record = Self.consumed(Self.message.record(of: Self.record, to: Self.topics.retries[0]))
        record.headers.append(HalcyonHeader.history.with(json))
        #expect(throws: JobError.self) { try RetryMessage(record) }
    }

    @Test func topicsAreNamedByTheirDelay() {
        let delays: [Duration] = [.milliseconds(250), .milliseconds(1500), .seconds(10), .seconds(90), .seconds(3600)]
        let topics = Topics(
            prefix: "p.", retryDelays: delays, startDelays: [.seconds(1), .seconds(120)],
            webhookDelays: [.seconds(10), .seconds(3600)])
        #expect(topics.retries == ["p.retry.250ms", "p.retry.1500ms", "p.retry.10s", "p.retry.90s", "p.retry.60m"])
        #expect(
            topics.taken == topics.lanes + topics.retries + ["p.delay.1s", "p.delay.2m", "p.overflow"]
                && topics.all == topics.taken
                    + ["p.events", "p.webhooks.10s", "p.webhooks.60m", "p.dead", "p.control", "p.batches"]
        )
    }
}
