import Concurrency
import Formats
import Foundation
import HalcyonCluster
import HalcyonModel
import HalcyonWorker
import Kafka
import TestSupport
import Testing

/// Progress events of slow fetches, with a complete worker.
@Suite(.limitedParallelism, .sharedApacheKafka) struct ProgressEventTests {
    /// Returns an origin that sends a photograph in three pieces, and after each but the last waits until all of these
    /// jobs have a progress event that counts it. `/known` has a Content-Length, `/unknown` has none.
    private static func origin(_ photograph: [UInt8], _ cluster: WorkerFixture, waitingFor ids: [String]) -> RawOrigin {
        RawOrigin { request in
            let isChunked = request.path == "/unknown"
            let length = isChunked ? "Transfer-Encoding: chunked" : "Content-Length: \(photograph.count)"
            var steps: [RawOrigin.Step] = [.text("HTTP/1.1 200 OK\r\n\(length)\r\n\r\n")]
            let size = (photograph.count + 2) / 3
            for start in stride(from: 0, to: photograph.count, by: size) {
                let piece = Array(photograph[start...].prefix(size))
                let sent = start + piece.count
                if isChunked { steps.append(.text("\(String(piece.count, radix: 16))\r\n")) }
                steps.append(.bytes(isChunked ? piece + [13, 10] : piece))
                guard sent < photograph.count else { continue }
                steps.append(.wait { ids.allSatisfy { Self.received(cluster, of: $0).contains(sent) } })
            }
            if isChunked { steps.append(.text("0\r\n\r\n")) }
            return steps
        }
    }

    private static func job(_ id: String, _ origin: RawOrigin, _ path: String, width: Int = 30) -> String {
        #"{"id":"\#(id)","source":"\#(origin.url(path))","width":\#(width),"metadata":{"n":1}}"#
    }

    private static func progress(_ cluster: WorkerFixture, of id: String) -> [EventLog.Entry] {
        cluster.events.all.filter { $0.jobID == id && $0.kind == "progress" }
    }

    private static func received(_ cluster: WorkerFixture, of id: String) -> [Int] {
        progress(cluster, of: id).compactMap { $0.data["received"] as? Int }
    }

    @Test(.enabled(if: ApacheKafka.isAvailable), arguments: [false, true])
    func slowFetchesPublishProgressEvents(exactlyOnce: Bool) async throws {
        let photograph = try SampleImages.bytes()
        let topics = Topics(prefix: "progress-\(UUID().uuidString)-")
        let ids = ["first", "same", "other"]
        try await WorkerFixture.with(broker: .apache, topics: topics) { cluster in
            let origin = Self.origin(photograph, cluster, waitingFor: ids)
            try await cluster.withWorker {
                $0.group = topics.prefix
                $0.progressInterval = .milliseconds(300)
                if exactlyOnce { $0.transactions = TransactionOptions() }
            } _: {
                try await cluster.submit(Self.job("first", origin, "/known"))
                try await until("the fetch has started") { origin.requests.count == 1 }
                try await cluster.submit(Self.job("same", origin, "/known"))
                try await cluster.submit(Self.job("other", origin, "/known", width: 31))
                for id in ids { #expect(try await cluster.events.terminal(of: id).kind == "ready") }
                #expect(origin.requests.count == 1)
                for id in ids {
                    // There may also have been an event before the first byte.
                    let events = Self.progress(cluster, of: id).filter { $0.data["received"] as? Int != 0 }
                    #expect(events.count >= 2, "\(id)")
                    let received = events.compactMap { $0.data["received"] as? Int }
                    #expect(received == Array(Set(received)).sorted() && received.count == events.count)
                    #expect(received.allSatisfy { (1...photograph.count).contains($0) })
                    for event in events {
                        #expect(event.data["total"] as? Int == photograph.count && event.data["attempt"] as? Int == 1)
                        #expect(event.data["stage"] as? String == "fetch")
                        #expect(((event.data["job"] as? [String: Any])?["metadata"] as? [String: Int]) == ["n": 1])
                    }
                    let moments = events.compactMap { ($0.json["time"] as? String).flatMap(Self.moment) }
                    #expect(zip(moments.dropFirst(), moments).allSatisfy { $0 - $1 > 0.29 })
                    let ids = events.compactMap { $0.json["id"] as? String }
                    #expect(Set(ids).count == events.count)
                    // The order within its partition, which readers of committed events see too.
                    #expect(cluster.events.all.last { $0.jobID == id }?.kind == "ready")
                }
                #expect(cluster.events.all.first { $0.jobID == "first" }?.kind == "started")
            }
            try await origin.stop()
        }
    }

    private static func moment(_ text: String) -> Double? {
        (try? Date(text, strategy: Date.ISO8601FormatStyle(includingFractionalSeconds: true)))?.timeIntervalSince1970
    }

    @Test func omitsUnknownTotalLength() async throws {
        let photograph = try SampleImages.bytes()
        try await WorkerFixture.with { cluster in
            let origin = Self.origin(photograph, cluster, waitingFor: ["a"])
            try await cluster.withWorker {
                $0.progressInterval = .milliseconds(300)
            } _: {
                try await cluster.submit(Self.job("a", origin, "/unknown"))
                #expect(try await cluster.events.terminal(of: "a").kind == "ready")
                let events = Self.progress(cluster, of: "a")
                #expect(!events.isEmpty && events.allSatisfy { $0.data["total"] == nil && $0.data["received"] != nil })
            }
            try await origin.stop()
        }
    }

    @Test(arguments: [Duration.zero, .seconds(600)])
    func zeroOrLongIntervalPublishesNoProgressEvents(interval: Duration) async throws {
        let origin = try SampleImages.origin(after: .milliseconds(500))
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker {
                $0.progressInterval = interval
            } _: {
                try await cluster.submit(Self.job("a", origin, "/a"))
                #expect(try await cluster.events.terminal(of: "a").kind == "ready")
                #expect(cluster.events.all.map(\.kind) == ["started", "ready"])
            }
        }
        try await origin.stop()
    }

    @Test func publishesNothingForStalledFetchesOrEndedJobs() async throws {
        let photograph = try SampleImages.bytes()
        let origin = RawOrigin { _ in
            [
                .text("HTTP/1.1 200 OK\r\nContent-Length: \(photograph.count)\r\n\r\n"),
                .bytes(Array(photograph.prefix(1000))), .awaitEnd,
            ]
        }
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker {
                $0.progressInterval = .milliseconds(200)
            } _: {
                for id in ["a", "b"] { try await cluster.submit(Self.job(id, origin, "/")) }
                try await until("both jobs have an event that counts all bytes") {
                    ["a", "b"].allSatisfy { Self.received(cluster, of: $0).contains(1000) }
                }
                try await cluster.publish(.cancel(.job("a")))
                #expect(try await cluster.events.terminal(of: "a").kind == "cancelled")
                try await Task.sleep(for: .seconds(1))
                for id in ["a", "b"] {
                    let received = Self.received(cluster, of: id)
                    // There may also have been an event before the first byte.
                    #expect(received == [1000] || received == [0, 1000])
                }
                #expect(cluster.events.all.last { $0.jobID == "a" }?.kind == "cancelled")
                try await cluster.publish(.cancel(.job("b")))
                _ = try await cluster.events.terminal(of: "b")
            }
        }
        try await origin.stop()
    }

    /// Returns an origin that delays each response until the job has one more progress event. `/none` is not found.
    private static func origin(_ cluster: WorkerFixture, of id: String) throws -> RawOrigin {
        let photograph = try SampleImages.bytes()
        let requests = Lock(0)
        return RawOrigin { request in
            let number = requests.withLock { count in
                count += 1
                return count
            }
            let response =
                request.path == "/none" ? RawOrigin.answer("404 Not Found") : RawOrigin.Step.response(photograph)
            let wait = RawOrigin.Step.wait { Self.progress(cluster, of: id).count >= number }
            return [wait] + response
        }
    }

    private static func expectUniqueIDs(_ events: [EventLog.Entry]) {
        let ids = events.compactMap { $0.json["id"] as? String }
        #expect(ids.count >= 2 && Set(ids).count == ids.count, "\(ids)")
    }

    /// The fallback picture is loaded in the attempt that failed.
    @Test func fallbackPictureContinuesTheNumbersOfEvents() async throws {
        try await WorkerFixture.with { cluster in
            let origin = try Self.origin(cluster, of: "a")
            try await cluster.withWorker {
                $0.progressInterval = .milliseconds(100)
            } _: {
                let (source, fallback) = (origin.url("/none"), origin.url("/good"))
                try await cluster.submit(#"{"id":"a","source":"\#(source)","width":30,"fallback":"\#(fallback)"}"#)
                #expect(try await cluster.events.terminal(of: "a").kind == "ready")
                Self.expectUniqueIDs(Self.progress(cluster, of: "a"))
            }
            try await origin.stop()
        }
    }

    /// A postponed attempt does not count. Its job returns through a retry topic and makes the same attempt again.
    @Test func postponedAttemptHasOtherIDsWhenItsJobReturns() async throws {
        try await WorkerFixture.with(topics: RetryTopicTests.shortDelays) { cluster in
            let origin = try Self.origin(cluster, of: "a")
            try await cluster.withWorker {
                $0.progressInterval = .milliseconds(100)
            } _: {
                for number in 1...2 {
                    // Another source each time, because the first result is cached.
                    let source = origin.url("/\(number)")
                    let job = #"{"id":"a","source":"\#(source)","width":30}"#
                    let record = ConsumedRecord(
                        topic: cluster.topics.jobs(.normal), partition: 0, offset: 9_000_000,
                        timestamp: Timestamp.now.milliseconds, value: Array(job.utf8))
                    let history = AttemptHistory(began: record.timestamp)
                    let message = RetryMessage(
                        provenance: OriginalRecord(record), history: history, due: record.timestamp, hasStarted: true)
                    try await cluster.producer.send(message.record(of: record, to: cluster.topics.retries[0]))
                    try await until("the job has ended") {
                        cluster.events.terminal.contains { $0.json["subject"] as? String == source }
                    }
                }
                let events = Self.progress(cluster, of: "a")
                #expect(events.allSatisfy { $0.data["attempt"] as? Int == 1 })
                Self.expectUniqueIDs(events)
            }
            try await origin.stop()
        }
    }

    /// A resumed transfer continues counting, and events carry the number of the attempt.
    @Test func resumedTransferCountsBytesOnceAndNumbersAttempts() async throws {
        let photograph = try SampleImages.bytes()
        let half = photograph.count / 2
        let turns = Lock(0)
        let published = Lock<@Sendable (_ received: Int, _ attempt: Int) -> Bool>({ _, _ in false })
        @Sendable func event(_ received: Int, _ attempt: Int) -> RawOrigin.Step {
            .wait { published.withLock { $0 }(received, attempt) }
        }
        let origin = RawOrigin { request in
            let turn = turns.withLock { turn in
                defer { turn += 1 }
                return turn
            }
            switch turn {
            case 0: return [event(0, 1)] + RawOrigin.answer("503 Busy")
            case 1:
                return [
                    .text("HTTP/1.1 200 OK\r\nETag: \"e\"\r\nContent-Length: \(photograph.count)\r\n\r\n"),
                    .bytes(Array(photograph.prefix(half))), event(half, 2), .close,
                ]
            default:
                let rest = Array(photograph[half...])
                let range = "Content-Range: bytes \(half)-\(photograph.count - 1)/\(photograph.count)"
                return [
                    .text("HTTP/1.1 206 Part\r\nETag: \"e\"\r\n\(range)\r\nContent-Length: \(rest.count)\r\n\r\n"),
                    .bytes(Array(rest.dropLast(10))), event(photograph.count - 10, 2), .bytes(Array(rest.suffix(10))),
                ]
            }
        }
        try await WorkerFixture.with { cluster in
            @Sendable func received(_ attempt: Int) -> [Int] {
                Self.progress(cluster, of: "a").filter { $0.data["attempt"] as? Int == attempt }
                    .compactMap { $0.data["received"] as? Int }
            }
            published.withLock { $0 = { received($1).contains($0) } }
            try await cluster.withWorker {
                RetryTests.useShortBackoff(&$0)
                $0.progressInterval = .milliseconds(250)
            } _: {
                try await cluster.submit(Self.job("a", origin, "/"))
                #expect(try await cluster.events.terminal(of: "a").kind == "ready")
                let events = Self.progress(cluster, of: "a")
                #expect(received(1) == [0])
                #expect(received(2) == received(2).sorted() && received(2).allSatisfy { $0 <= photograph.count })
                #expect(events.last?.data["total"] as? Int == photograph.count)
                let ids = events.compactMap { $0.json["id"] as? String }
                #expect(Set(ids).count == events.count)
            }
        }
        try await origin.stop()
    }
}
