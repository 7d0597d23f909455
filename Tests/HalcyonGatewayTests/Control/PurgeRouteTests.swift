import Foundation
import TestSupport
import Testing

@testable import HalcyonGateway

/// `POST /v1/purge`, in a whole cluster.
@Suite(.limitedParallelism) struct PurgeRouteTests {
    @Test func purgedImagesAreGoneAndCounted() async throws {
        try await GatewayFixture.with { fixture in
            try await fixture.withWorker {
                try await fixture.withGateway { (client: GatewayClient) async throws in
                    for (name, fields) in [("tag", #""tag":"t""#), ("source", #""source":"initials:A""#)] {
                        let job = #"{"id":"\#(name)","source":"initials:A","width":8,"tags":["t"]}"#
                        let accepted = try await client.send(.post, "/v1/jobs", job)
                        let image = try #require((accepted.json["images"] as? [String])?.first)
                        let end = try await client.send(.get, "/v1/jobs/\(name)?wait=500").json
                        #expect(end["state"] as? String == "ready")
                        #expect(try await client.send(.head, image).status == 200)
                        let answer = try await client.send(.post, "/v1/purge", "{\(fields)}")
                        #expect(answer.status == 200 && answer.json["count"] as? Int == 1)
                        try await until("the image is gone") { try await client.send(.get, image).status == 404 }
                    }
                }
            }
        }
    }

    /// Images with a TTL of an hour are removed from memory when a gateway receives the purge event, whichever gateway
    /// purged them.
    @Test func purgeInvalidatesMemoryCachesOfAllGateways() async throws {
        try await GatewayFixture.with { fixture in
            try await fixture.withWorker {
                try await fixture.withGateway({ $0.imageCache.time = .seconds(3600) }) {
                    (client: GatewayClient) async throws in
                    try await fixture.withGateway { (otherClient: GatewayClient) async throws in
                        for name in ["tag", "source", "key"] {
                            let job = #"{"id":"\#(name)","source":"initials:A","width":8,"tags":["t"]}"#
                            let accepted = try await client.send(.post, "/v1/jobs", job)
                            let image = try #require((accepted.json["images"] as? [String])?.first)
                            #expect(
                                try await client.send(.get, "/v1/jobs/\(name)?wait=500").json["state"] as? String
                                    == "ready")
                            #expect(try await client.send(.get, image).status == 200)
                            let key = try #require(image.split(separator: "/").last?.removingPercentEncoding)
                            let value = ["tag": "t", "source": "initials:A", "key": key][name] ?? ""
                            #expect(
                                try await otherClient.send(.post, "/v1/purge", #"{"\#(name)":"\#(value)"}"#).status
                                    == 200)
                            try await until("the image is gone") { try await client.send(.get, image).status == 404 }
                        }
                    }
                }
            }
        }
    }

    @Test func rejectsInvalidPurges() async throws {
        let cases = [
            "", "{", "{}", "[]", #"{"tag":"a","key":"b"}"#, #"{"key":"halcyon:x"}"#, #"{"source":"gopher://x"}"#,
            #"{"tag":7}"#,
        ]
        try await GatewayFixture.with { fixture in
            try await fixture.withGateway { (client: GatewayClient) async throws in
                for body in cases {
                    let answer = try await client.send(.post, "/v1/purge", body)
                    #expect(
                        answer.status == 400 && answer.headers["Content-Type"] == "application/problem+json",
                        "\(body)")
                }
            }
        }
    }

    @Test func requiresAdminScope() async throws {
        let secret = "0123456789abcdef"
        try await GatewayFixture.with { fixture in
            try await fixture.withGateway({
                $0.access.keys = [APIKey(name: "shop", secret: secret, scopes: [.submit, .read])]
            }) { (client: GatewayClient) async throws in
                let body = #"{"tag":"t"}"#
                #expect(try await client.send(.post, "/v1/purge", body).status == 401)
                #expect(try await client.send(.post, "/v1/purge", body, headers: ["X-API-Key": secret]).status == 403)
            }
        }
    }
}
