import Foundation
import HalcyonCluster
import Kafka
import TestSupport
import Testing

@testable import HalcyonGateway

/// `POST /v1/dead/replay` and `POST /v1/dead/discard`, in a whole cluster.
@Suite(.limitedParallelism) struct DeadLetterReplayTests {
    private func replay(
        _ client: GatewayClient, _ body: String, _ action: String = "replay"
    ) async throws -> [String: Any] {
        let answer = try await client.send(.post, "/v1/dead/\(action)", body)
        #expect(answer.status == 200, "\(answer.text)")
        return answer.json
    }

    private func outcomes(_ answer: [String: Any]) -> [String: String] {
        let letters = (answer["letters"] as? [[String: String]] ?? []).map { ($0["letter"] ?? "", $0["outcome"] ?? "") }
        return Dictionary(letters) { one, _ in one + " twice" }
    }

    @Test func replaysOnlySelectedDeadLettersOnce() async throws {
        try await GatewayFixture.with { fixture in
            try await fixture.deadLetters.publish("one", "two", "three", "four")
            try await fixture.withWorker {
                try await fixture.withGateway { (client: GatewayClient) async throws in
                    let answer = try await replay(client, #"{"letters":["0-1","0-9","7-0"]}"#)
                    #expect(outcomes(answer) == ["0-1": "replayed"] && answer["dryRun"] as? Bool == false)
                    #expect(answer["missing"] as? [String] == ["0-9", "7-0"])
                    try await until("the replayed job ends") { try await fixture.deadLetters.readyJobs() == ["two"] }
                    #expect(try await client.pages() == [["one", "three", "four"]])
                    #expect(try await client.pages("replayed=true") == [["one", "two", "three", "four"]])
                    #expect(try await client.send(.get, "/v1/dead/0-1").json["replayed"] as? Bool == true)
                    // Replaying it again has no effect.
                    #expect(outcomes(try await replay(client, #"{"letters":["0-1"]}"#)) == ["0-1": "replayed already"])

                    let rest = try await replay(client, #"{"filter":{"job":["three","four"],"code":"http_error"}}"#)
                    #expect(outcomes(rest) == ["0-2": "replayed", "0-3": "replayed"] && rest["missing"] == nil)
                    try await until("the replayed jobs end") {
                        try await fixture.deadLetters.readyJobs() == ["two", "three", "four"]
                    }
                    #expect(try await client.pages() == [["one"]])
                }
            }
            // Each was sent once, with its original key and headers.
            let sent = try await fixture.deadLetters.records(of: fixture.topics.jobs(.normal))
            #expect(sent.count == 3)
            for record in sent {
                #expect(record.key == Array("key".utf8))
                #expect(record.headers.map(\.name) == ["traceparent", "halcyon-replays"])
            }
        }
    }

    @Test func dryRunReplaysNothing() async throws {
        try await GatewayFixture.with { fixture in
            try await fixture.deadLetters.publish("one", "two")
            try await fixture.withGateway { (client: GatewayClient) async throws in
                let answer = try await replay(client, #"{"filter":{},"dryRun":true}"#)
                #expect(outcomes(answer) == ["0-0": "would be replayed", "0-1": "would be replayed"])
                #expect(answer["dryRun"] as? Bool == true)
                #expect(try await client.pages() == [["one", "two"]])
            }
            #expect(try await fixture.deadLetters.records(of: fixture.topics.jobs(.normal)).isEmpty)
            #expect(try await fixture.deadLetters.records(of: fixture.topics.dead).count == 2)
        }
    }

    @Test func cutDeadLettersAreNotReplayed() async throws {
        try await GatewayFixture.with { fixture in
            var record = DeadLetterFixture.record("one", fixture.topics)
            record.headers.append(RecordHeader("halcyon-cut", "1500000"))
            try await fixture.deadLetters.publish([record])
            try await fixture.withGateway { (client: GatewayClient) async throws in
                #expect(try await client.send(.get, "/v1/dead/0-0").json["cut"] as? Int == 1_500_000)
                for filter in [#"{"filter":{},"dryRun":true}"#, #"{"filter":{}}"#] {
                    let answer = try await replay(client, filter)
                    #expect(outcomes(answer) == ["0-0": "failed"])
                    let letters = answer["letters"] as? [[String: String]] ?? []
                    let message = letters.first?["message"] ?? ""
                    #expect(message.contains("topic halcyon.jobs, partition 1, offset 7"), "\(message)")
                }
                #expect(try await client.pages() == [["one"]])
            }
            #expect(try await fixture.deadLetters.records(of: fixture.topics.jobs(.normal)).isEmpty)
            #expect(try await fixture.deadLetters.records(of: fixture.topics.dead).count == 1)
        }
    }

    @Test func discardedDeadLettersAreNotReplayed() async throws {
        try await GatewayFixture.with { fixture in
            try await fixture.deadLetters.publish("one", "two", "three")
            // One that cannot be replayed can be discarded.
            try await fixture.deadLetters.publish([
                ProducerRecord(topic: fixture.topics.dead, partition: 0, value: Array("?".utf8))
            ])
            try await fixture.withGateway { (client: GatewayClient) async throws in
                let dry = try await replay(client, #"{"letters":["0-1"],"dryRun":true}"#, "discard")
                #expect(outcomes(dry) == ["0-1": "would be discarded"])
                #expect(try await client.pages() == [["one", "two", "three"]])
                let answer = try await replay(client, #"{"letters":["0-1","0-3","0-9"]}"#, "discard")
                #expect(outcomes(answer) == ["0-1": "discarded", "0-3": "discarded"])
                #expect(answer["missing"] as? [String] == ["0-9"])
                #expect(try await client.pages() == [["one", "three"]])
                // It can still be read, and neither action changes it.
                #expect(try await client.send(.get, "/v1/dead/0-1").json["replayed"] as? Bool == true)
                for action in ["discard", "replay"] {
                    let again = try await replay(client, #"{"letters":["0-1"]}"#, action)
                    #expect(outcomes(again) == ["0-1": "replayed already"])
                }
                let rest = try await replay(client, #"{"filter":{"job":"t*"}}"#, "discard")
                #expect(outcomes(rest) == ["0-2": "discarded"])
                #expect(try await client.pages() == [["one"]])
            }
            // Another gateway reads the markers.
            try await fixture.withGateway { (client: GatewayClient) async throws in
                #expect(try await client.pages() == [["one"]])
                #expect(try await client.send(.post, "/v1/dead/discard", "{}").status == 400)
            }
            #expect(try await fixture.deadLetters.records(of: fixture.topics.jobs(.normal)).isEmpty)
        }
    }

    @Test func replaysInPagesAndReportsFailures() async throws {
        try await GatewayFixture.with { fixture in
            let records = (0..<50).map { DeadLetterFixture.record("\($0)", partition: $0 % 2, fixture.topics) }
            try await fixture.deadLetters.publish(records)
            // A dead letter without its origin is reported as failed, and does not stop the replay.
            try await fixture.deadLetters.publish([
                ProducerRecord(topic: fixture.topics.dead, partition: 0, value: Array("?".utf8))
            ])
            try await fixture.withGateway { (client: GatewayClient) async throws in
                var (count, failures, cursor, rounds) = (0, 0, "", 0)
                repeat {
                    let answer = try await replay(client, #"{"filter":{},"limit":9\#(cursor)}"#)
                    let results = Array(outcomes(answer).values)
                    count += results.count { $0 == "replayed" }
                    failures += results.count { $0 == "failed" }
                    cursor = (answer["next"] as? String).map { #","cursor":"\#($0)""# } ?? ""
                    rounds += 1
                } while !cursor.isEmpty
                #expect(count == 50 && failures == 1 && rounds == 6)
                #expect(try await client.send(.get, "/v1/dead").json["open"] as? Int == 1)
            }
            let sent = try await fixture.deadLetters.records(of: fixture.topics.jobs(.normal))
            #expect(sent.count == 50 && Set(sent.map(\.value)).count == 50)
        }
    }

    @Test func rejectsInvalidReplayRequests() async throws {
        let cases = [
            "", "{", "[]", "{}", #"{"letters":[]}"#, #"{"letters":["x"]}"#, #"{"letters":7}"#, #"{"letters":[7]}"#,
            #"{"letters":["0-0"],"filter":{}}"#, #"{"filter":[]}"#, #"{"filter":{"colour":"red"}}"#,
            #"{"filter":{"code":"never"}}"#, #"{"filter":{"code":7}}"#, #"{"filter":{},"limit":0}"#,
            #"{"filter":{},"limit":1001}"#, #"{"filter":{},"dryRun":"yes"}"#, #"{"filter":{},"cursor":"x"}"#,
            #"{"filter":{},"dryrun":true}"#,
        ]
        try await GatewayFixture.with { fixture in
            try await fixture.deadLetters.publish("one")
            try await fixture.withGateway { (client: GatewayClient) async throws in
                for body in cases {
                    let answer = try await client.send(.post, "/v1/dead/replay", body)
                    #expect(
                        answer.status == 400 && answer.headers["Content-Type"] == "application/problem+json",
                        "\(body)")
                    let form = try await client.send(
                        .post, "/v1/dead/replay", body, headers: ["Content-Type": "application/x-www-form-urlencoded"])
                    #expect(form.status == 415, "\(body)")
                }
            }
            #expect(try await fixture.deadLetters.records(of: fixture.topics.dead).count == 1)
        }
    }
}
