import Foundation
import HalcyonCoding
import HalcyonModel
import Testing

@Suite struct EventWriterTests {
    static func text(_ event: Event) -> String { String(decoding: event.json, as: UTF8.self) }

    @Test func startedEventContainsTheJob() {
        #expect(
            Self.text(SampleEvents.started) == """
                {"specversion":"1.0","id":"halcyon.jobs-3-1042-started","source":"/halcyon",\
                "type":"halcyon.image.started","subject":"https://example.org/cat.jpg","time":"2026-11-21T10:31:07.250Z",\
                "datacontenttype":"application/json",\
                "traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",\
                "data":{"job":{"id":"article-17-hero","metadata":{"article":17}}}}
                """)
    }

    @Test func progressEventContainsReceivedAndTotalBytes() {
        let tail = #""attempt":1}}"#
        #expect(
            Self.text(SampleEvents.progress).hasSuffix(#""stage":"fetch","received":524288,"total":1482113,"# + tail))
        var event = SampleEvents.progress
        event.body = .progress(LoadProgress(received: 0), attempt: 1)
        #expect(Self.text(event).hasSuffix(#""stage":"fetch","received":0,"# + tail))
    }

    @Test func readyEventContainsKeysAndMetadata() {
        let data = """
            "key":"\(SampleEvents.key)","variants":[{"key":"\(SampleEvents.key)","width":400,"height":300,\
            "format":"jpeg","bytes":23481,\
            "sha256":"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",\
            "expiresAt":"2026-11-21T11:31:07.390Z"}],\
            "expiresAt":"2026-11-21T11:31:07.390Z","origin":"network","timings":{"queued":4.1,"fetch":91.62,\
            "decode":31.25,"process":8.5,"encode":5.875,"store":0.75,"total":145.3},"source":{"status":200,\
            "etag":"\\"5f3c-61e\\"","bytes":1482113,"format":"jpeg","width":4000,"height":3000}}}
            """
        #expect(Self.text(SampleEvents.ready).hasSuffix(data))
    }

    @Test func failedEventContainsCodeAndMessage() {
        let data = """
            "code":"not_found","message":"https://example.org/cat.jpg answered 404","retryable":false,"attempts":1,\
            "timings":{"queued":4.1,"fetch":58.4,"total":62.75}}}
            """
        #expect(Self.text(SampleEvents.failed).hasSuffix(data))
    }

    @Test func omitsUnknownValues() {
        let event = Event(
            id: "e", time: 0, subject: nil, jobID: "j", echo: Job.PassthroughMetadata(), traceparent: nil,
            body: .ready(
                Ready(
                    results: [
                        ImageResult(
                            key: "k",
                            facts: ResultMetadata(
                                width: 1, height: 2, format: .png, bytes: 3, sha256: "s",
                                source: SourceMetadata(
                                    status: nil, etag: nil, bytes: 4, format: .svg, width: 5, height: 6)),
                            expiresAt: nil)
                    ],
                    origin: .memory, timings: Timings())))
        #expect(
            Self.text(event) == """
                {"specversion":"1.0","id":"e","source":"/halcyon","type":"halcyon.image.ready",\
                "time":"1970-01-01T00:00:00.000Z","datacontenttype":"application/json",\
                "data":{"job":{"id":"j"},"key":"k","variants":[{"key":"k","width":1,"height":2,"format":"png","bytes":3,\
                "sha256":"s"}],"origin":"memory","timings":{},"source":{"bytes":4,"format":"svg","width":5,"height":6}}}
                """)
    }

    @Test func inlineBytesAreBase64() throws {
        let bytes = (0..<100).map { UInt8($0 * 2) }
        let event = ready { $0.results[0].inline = bytes }
        let data = try #require(try variant(of: event)["data"] as? String)
        #expect(Data(base64Encoded: data) == Data(bytes))
        #expect(try variant(of: ready { $0.results[0].inline = nil })["data"] == nil)
    }

    @Test func writesResultsInOrder() throws {
        let event = ready { ready in
            let first = ready.results[0]
            var second = first
            second.key = "k"
            second.expiresAt = 1_795_260_000
            second.facts.frames = 12
            second.facts.blurhash = "LEHV6nWB2yk8pyo0adR*.7kCMdnj"
            second.facts.dominantColor = "#8a6f5c"
            second.facts.source.bytes = 1
            ready.results = [first, second]
        }
        let text = Self.text(event)
        #expect(
            text.contains(
                #""data":{"job":{"id":"article-17-hero","metadata":{"article":17}},"key":"\#(SampleEvents.key)","#))
        let end = [
            #""expiresAt":"2026-11-21T11:31:07.390Z"},{"key":"k","width":400,"height":300,"format":"jpeg","#,
            #""bytes":23481,"sha256":"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08","#,
            ##""frames":12,"blurhash":"LEHV6nWB2yk8pyo0adR*.7kCMdnj","dominantColor":"#8a6f5c","##,
            #""expiresAt":"2026-11-21T11:20:00.000Z"}],"expiresAt":"2026-11-21T11:20:00.000Z","#,
        ].joined()
        #expect(text.contains(end))
        // All results have the same source. It is taken from the first.
        #expect(text.contains(#""source":{"status":200,"etag":"\"5f3c-61e\"","bytes":1482113,"#))
    }

    @Test func omitsCommonExpiryIfAResultIsNotStored() throws {
        let event = ready { ready in
            ready.results.append(ready.results[0])
            ready.results[1].expiresAt = nil
        }
        #expect(Self.text(event).components(separatedBy: "expiresAt").count == 2)
    }

    @Test func timingsAreRoundedToMicroseconds() {
        let timings = SampleEvents.timings([.fetch: 1.23456789, .total: 0.0004])
        let event = ready { $0.timings = timings }
        #expect(Self.text(event).contains(#""timings":{"fetch":1.235,"total":0.0}"#))
    }

    @Test func negativeTimingsBecomeZero() {
        // A producer's clock may be ahead of the worker's.
        #expect(SampleEvents.timings([.queued: -12])[.queued] == 0)
        var timings = SampleEvents.timings([.fetch: 3])
        timings[.fetch] = nil
        #expect(timings == Timings())
    }

    @Test func foundationParsesEveryEvent() throws {
        var random = RandomEvents(seed: 5)
        for _ in 0..<500 {
            let event = random.next()
            let object = try #require(
                JSONSerialization.jsonObject(with: Data(event.json)) as? [String: Any])
            #expect(object["id"] as? String == event.id)
            #expect(object["subject"] as? String == event.subject)
            let job = (object["data"] as? [String: Any])?["job"] as? [String: Any]
            #expect(job?["id"] as? String == event.jobID)
            #expect((job?["metadata"] == nil) == (event.echo.metadata == nil))
        }
    }

    @Test func purgedEventHasNoJob() {
        let purged = [Purged(.tag("t"), count: 0), Purged(.key("k"), of: "a", count: 1, cacheTags: ["x", "y"])]
        let events = purged.map { Event(id: "p", time: 0, subject: nil, jobID: nil, body: .purged($0)) }
        #expect(
            events.map { Self.text($0).split(separator: #""data":"#)[1] } == [
                #"{"tag":"t","count":0}}"#, #"{"key":"k","tenant":"a","count":1,"cacheTags":["x","y"]}}"#,
            ])
        #expect(events.map(\.key) == ["t", "k"])
        #expect(SampleEvents.purged.key == "https://example.org/cat.jpg" && SampleEvents.ready.key == "article-17-hero")
    }

    @Test func readyFailedCancelledAndSupersededAreTerminal() {
        #expect(Event.Kind.allCases.filter(\.isTerminal) == [.ready, .failed, .cancelled, .superseded])
        #expect(
            SampleEvents.all.map(\.kind) == [.started, .progress, .ready, .failed, .cancelled, .superseded, .purged])
    }

    private func ready(_ change: (inout Ready) -> Void) -> Event {
        var event = SampleEvents.ready
        if case .ready(var ready) = event.body {
            change(&ready)
            event.body = .ready(ready)
        }
        return event
    }

    private func variant(of event: Event) throws -> [String: Any] {
        let object = try JSONSerialization.jsonObject(with: Data(event.json)) as? [String: Any]
        let variants = (object?["data"] as? [String: Any])?["variants"] as? [[String: Any]]
        return try #require(variants?.first)
    }
}
