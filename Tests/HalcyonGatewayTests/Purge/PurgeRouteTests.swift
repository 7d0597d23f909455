import Foundation
import TestSupport
import Testing

@testable import HalcyonGateway

/// `POST /v1/purge`, through a whole cluster.
@Suite(.limitedParallelism) struct PurgeRouteTests {
    @Test func whatIsPurgedIsGoneAndTold() async throws {
        try await GatewayFixture.with { fixture in
            try await fixture.withWorker {
                try await fixture.withGateway { (ask: Asking) async throws in
                    for (name, fields) in [("tag", #""tag":"t""#), ("source", #""source":"initials:A""#)] {
                        let job = #"{"id":"\#(name)","source":"initials:A","width":8,"tags":["t"]}"#
                        let taken = try await ask(.post, "/v1/jobs", job)
                        let image = try #require((taken.json["images"] as? [String])?.first)
                        #expect(try await ask(.get, "/v1/jobs/\(name)?wait=30").json["state"] as? String == "ready")
                        #expect(try await ask(.head, image).status == 200)
                        let answer = try await ask(.post, "/v1/purge", "{\(fields)}")
                        #expect(answer.status == 200 && answer.json["count"] as? Int == 1)
                        try await until("it is gone") { try await ask(.get, image).status == 404 }
                    }
                }
            }
        }
    }

    /// Images that would be kept for a minute are gone as soon as any gateway has heard of the purge, whoever did it.
    @Test func whatAGatewayKeepsForAMomentIsPurgedToo() async throws {
        try await GatewayFixture.with { fixture in
            try await fixture.withWorker {
                try await fixture.withGateway({ $0.imageCache.time = .seconds(60) }) { (ask: Asking) async throws in
                    try await fixture.withGateway { (other: Asking) async throws in
                        for name in ["tag", "source", "key"] {
                            let job = #"{"id":"\#(name)","source":"initials:A","width":8,"tags":["t"]}"#
                            let taken = try await ask(.post, "/v1/jobs", job)
                            let image = try #require((taken.json["images"] as? [String])?.first)
                            #expect(try await ask(.get, "/v1/jobs/\(name)?wait=30").json["state"] as? String == "ready")
                            #expect(try await ask(.get, image).status == 200)
                            let key = try #require(image.split(separator: "/").last?.removingPercentEncoding)
                            let value = ["tag": "t", "source": "initials:A", "key": key][name] ?? ""
                            #expect(try await other(.post, "/v1/purge", #"{"\#(name)":"\#(value)"}"#).status == 200)
                            try await until("it is gone") { try await ask(.get, image).status == 404 }
                        }
                    }
                }
            }
        }
    }

    @Test(arguments: [
        "", "{", "{}", "[]", #"{"tag":"a","key":"b"}"#, #"{"key":"halcyon:x"}"#, #"{"source":"gopher://x"}"#,
        #"{"tag":7}"#,
    ])
    func whatIsNoPurgeIsRefused(_ body: String) async throws {
        try await GatewayFixture.with { fixture in
            try await fixture.withGateway { (ask: Asking) async throws in
                let answer = try await ask(.post, "/v1/purge", body)
                #expect(answer.status == 400 && answer.headers["Content-Type"] == "application/problem+json")
            }
        }
    }

    @Test func itIsForAdministratorsAlone() async throws {
        let secret = "0123456789abcdef"
        try await GatewayFixture.with { fixture in
            try await fixture.withGateway({
                $0.access.keys = [APIKey(name: "shop", secret: secret, scopes: [.submit, .read])]
            }) { (ask: Asking) async throws in
                let body = #"{"tag":"t"}"#
                #expect(try await ask(.post, "/v1/purge", body).status == 401)
                #expect(try await ask(.post, "/v1/purge", body, headers: ["X-API-Key": secret]).status == 403)
            }
        }
    }
}
