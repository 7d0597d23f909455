import HalcyonCluster
import HalcyonCoding
import Kafka
import TestSupport

@testable import HalcyonGateway

/// Publishes dead letters as workers do, and reads topics.
struct DeadLetterFixture: Sendable {
    let topics: Topics
    let brokers: String

    /// Returns a dead letter of the lane `normal`. Its job succeeds when it is replayed, because it renders initials.
    static func record(
        _ job: String, code: String = "http_error", source: String = "initials:A", partition: Int32 = 0,
        _ topics: Topics
    ) -> ProducerRecord {
        let headers = [
            ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"), ("halcyon-code", code),
            ("halcyon-message", "the origin answered 503"), ("halcyon-topic", topics.jobs(.normal)),
            ("halcyon-partition", "1"), ("halcyon-offset", "7"), ("halcyon-submitted", "1795257067000"),
            ("halcyon-attempts", "5"), ("halcyon-began", "1795257067000"),
            ("halcyon-history", #"[{"time":"2026-11-21T18:00:00.000Z","code":"http_error","message":"503"}]"#),
            ("halcyon-reason", "attempts"),
        ]
        return ProducerRecord(
            topic: topics.dead, partition: partition, key: Array("key".utf8),
            value: Array(#"{"id":"\#(job)","source":"\#(source)","width":8,"tenant":"shop"}"#.utf8),
            headers: headers.map { RecordHeader($0.0, $0.1) })
    }

    func publish(_ records: [ProducerRecord]) async throws {
        let producer = try Producer(properties: ["bootstrap.servers": brokers, "linger.ms": "20"])
        try await withThrowingTaskGroup(of: Void.self) { group in
            for record in records { group.addTask { _ = try await producer.send(record) } }
            try await group.waitForAll()
        }
        await producer.close()
    }

    /// Publishes dead letters one after another, so that their order is known.
    func publish(_ jobs: String..., code: String = "http_error", source: String = "initials:A") async throws {
        for job in jobs { try await publish([Self.record(job, code: code, source: source, topics)]) }
    }
}

extension DeadLetterFixture {
    /// Returns all records of a topic.
    func records(of topic: String) async throws -> [ConsumedRecord] {
        let reader = try await TopicReader.open(
            topic, from: .beginning, properties: ["bootstrap.servers": brokers] + MockCluster.fetchProperties,
            within: .patience)
        var records: [ConsumedRecord] = []
        let count = reader.endOffsets.values.reduce(0, +)
        while records.count < count, let batch = try await reader.nextBatch() { records += batch.records }
        await reader.close()
        return records
    }

    /// Returns the ids of the jobs that became ready.
    func readyJobs() async throws -> Set<String> {
        let events = try await records(of: topics.events).compactMap { $0.value.flatMap { DecodedEvent(json: $0) } }
        return Set(events.filter { $0.type == "ready" }.compactMap(\.jobID))
    }
}

extension GatewayFixture {
    var deadLetters: DeadLetterFixture { DeadLetterFixture(topics: topics, brokers: broker.bootstrapServers) }
}

extension GatewayClient {
    /// Returns the job ids of all dead letters that match a query, by page.
    func pages(_ query: String = "") async throws -> [[String]] {
        var pages: [[String]] = []
        var cursor = ""
        while true {
            let answer = try await send(.get, "/v1/dead?\(query)\(cursor)")
            guard answer.status == 200 else { throw UnexpectedResponse(text: answer.text) }
            pages.append((answer.json["letters"] as? [[String: Any]] ?? []).compactMap { $0["job"] as? String })
            guard let next = answer.json["next"] as? String else { return pages }
            cursor = "&cursor=\(next)"
        }
    }

    struct UnexpectedResponse: Error {
        let text: String
    }
}
