import Formats
import HalcyonCoding
import TestSupport
import Testing

@testable import HalcyonGateway

/// `/v1/presets` and `/v1/render/preset/{name}`, in a whole cluster.
@Suite(.limitedParallelism) struct PresetRouteTests {
    private static let card = #"{"job":{"width":40,"format":"png"},"overridable":["quality","height"]}"#

    @Test func registersListsAndDeletesPresets() async throws {
        try await GatewayFixture.with { fixture in
            try await fixture.withGateway { (client: GatewayClient) async throws in
                let json = ["Content-Type": "application/json"] as HTTPFields
                #expect(try await client.send(.get, "/v1/presets").text == #"{"presets":[]}"#)
                #expect(try await client.send(.get, "/v1/presets/card").status == 404)
                let put = try await client.send(.put, "/v1/presets/card", Self.card, headers: json)
                #expect(put.status == 200)
                #expect(
                    put.text
                        == #"{"name":"card","version":1,"job":{"width":40,"format":"png"},"overridable":["quality","height"],"origin":"registered"}"#
                )
                #expect(try await client.send(.get, "/v1/presets/card").text == put.text)
                #expect(try await client.send(.get, "/v1/presets").text == #"{"presets":[\#(put.text)]}"#)
                let again = try await client.send(.put, "/v1/presets/card", Self.card, headers: json)
                #expect(again.json["version"] as? Int == 1)
                let next = try await client.send(.put, "/v1/presets/card", #"{"job":{}}"#, headers: json)
                #expect(next.json["version"] as? Int == 2)
                let old = try await client.send(
                    .put, "/v1/presets/card", #"{"job":{"width":7},"version":2}"#, headers: json)
                #expect(old.status == 409)
                #expect(try await client.send(.delete, "/v1/presets/card").status == 204)
                #expect(try await client.send(.delete, "/v1/presets/card").status == 404)
                #expect(try await client.send(.get, "/v1/presets/card").status == 404)
            }
        }
    }

    @Test func refusesInvalidPresetsAndThoseOfTheSettings() async throws {
        let fixed = try Preset("fixed", json: Array(Self.card.utf8))
        try await GatewayFixture.with { fixture in
            try await fixture.withGateway({ $0.presets = [fixed] }) { (client: GatewayClient) async throws in
                let json = ["Content-Type": "application/json"] as HTTPFields
                let invalid = try await client.send(
                    .put, "/v1/presets/card", #"{"job":{"widht":1}}"#, headers: json)
                #expect(invalid.status == 400)
                #expect(
                    invalid.json["detail"] as? String == "invalid preset card: job.widht: unknown field")
                #expect(try await client.send(.put, "/v1/presets/only", Self.card, headers: json).status == 400)
                #expect(
                    try await client.send(.put, "/v1/presets/card", Self.card, headers: ["Content-Type": "text/plain"])
                        .status == 415)
                #expect(try await client.send(.put, "/v1/presets/fixed", Self.card, headers: json).status == 409)
                #expect(try await client.send(.delete, "/v1/presets/fixed").status == 409)
                #expect(
                    try await client.send(.get, "/v1/presets/fixed").json["origin"] as? String == "settings")
            }
        }
    }

    @Test func makesTheResultsOfAPresetAgain() async throws {
        try await GatewayFixture.with { fixture in
            try await fixture.withWorker {
                try await fixture.withGateway { (client: GatewayClient) async throws in
                    let json = ["Content-Type": "application/json"] as HTTPFields
                    _ = try await client.send(.put, "/v1/presets/card", Self.card, headers: json)
                    for letter in ["A", "B"] {
                        let job =
                            #"{"source":"initials:\#(letter)","preset":"card","maxAge":600,"tenant":"\#(letter)"}"#
                        let submitted = try await client.send(.post, "/v1/jobs", job, headers: json)
                        let path = "\(try #require(submitted.headers["Location"]))?wait=500"
                        #expect(try await client.send(.get, path).json["state"] as? String == "ready")
                    }
                    _ = try await client.send(.put, "/v1/presets/card", #"{"job":{"width":41}}"#, headers: json)
                    let path = "/v1/presets/card/rerender"
                    let answer = try await client.send(.post, "\(path)?id=again&tenant=B", "{}", headers: json)
                    #expect(
                        answer.status == 202 && Set(answer.json.keys) == ["id", "preset", "status"], "\(answer.text)")
                    try await until("the batch is completed") {
                        try await client.send(.get, "/v1/batches/again").json["state"] as? String == "completed"
                    }
                    let batch = try await client.send(.get, "/v1/batches/again").json
                    #expect(batch["total"] as? Int == 1 && batch["preset"] as? String == "card")
                    #expect((batch["counts"] as? [String: Int])?["ready"] == 1, "\(batch)")
                    #expect(
                        try await client.send(.post, "/v1/presets/none/rerender", "{}", headers: json).status == 404)
                    for query in ["reload=yes", "tenant=a%2Fb", "priority=urgent", "id=a%20b"] {
                        #expect(
                            try await client.send(.post, "\(path)?\(query)", "{}", headers: json).status == 400,
                            "\(query)")
                    }
                    #expect(try await client.send(.post, "\(path)?id=again", "{}", headers: json).status == 409)
                }
            }
        }
    }

    /// A worker that has an older version must not use it.
    @Test func resultsAreMadeAgainWithTheCurrentVersion() async throws {
        try await GatewayFixture.with { fixture in
            try await fixture.withGateway { (client: GatewayClient) async throws in
                let json = ["Content-Type": "application/json"] as HTTPFields
                for width in [40, 41, 42] {
                    let preset = #"{"job":{"width":\#(width)}}"#
                    _ = try await client.send(.put, "/v1/presets/card", preset, headers: json)
                }
                #expect(try await client.send(.post, "/v1/presets/card/rerender", "{}", headers: json).status == 202)
                let messages = try await fixture.values(in: fixture.topics.batches)
                let template = #""preset":{"name":"card","version":3}"#
                #expect(messages.contains { $0.contains(template) }, "\(messages)")
            }
        }
    }

    @Test func presetsRequireTheAdminScope() async throws {
        try await GatewayFixture.with { fixture in
            try await fixture.withGateway({
                $0.access.keys = [APIKey(name: "k", secret: "k", scopes: [.submit, .read])]
            }) { (client: GatewayClient) async throws in
                let key = ["X-API-Key": "k", "Content-Type": "application/json"] as HTTPFields
                #expect(try await client.send(.get, "/v1/presets", headers: key).status == 403)
                #expect(try await client.send(.put, "/v1/presets/card", Self.card, headers: key).status == 403)
                #expect(try await client.send(.delete, "/v1/presets/card", headers: key).status == 403)
                #expect(try await client.send(.post, "/v1/presets/card/rerender", "{}", headers: key).status == 403)
                #expect(try await client.send(.get, "/v1/presets").status == 401)
            }
        }
    }

    @Test func rendersWithAPresetAndFollowsItsChanges() async throws {
        try await GatewayFixture.with { fixture in
            try await fixture.withWorker {
                try await fixture.withGateway { (client: GatewayClient) async throws in
                    let json = ["Content-Type": "application/json"] as HTTPFields
                    let path = "/v1/render/preset/card?source=initials:A"
                    let unknown = try await client.send(.get, path)
                    #expect(unknown.status == 400 && unknown.json["code"] as? String == "invalid_job")
                    #expect(unknown.json["detail"] as? String == "preset: there is no preset card")
                    _ = try await client.send(.put, "/v1/presets/card", Self.card, headers: json)
                    let first = try await client.send(.get, path)
                    #expect(first.status == 200 && first.headers["Content-Type"] == "image/png")
                    let tag = try #require(first.headers["ETag"])
                    #expect(try await client.send(.get, path, headers: ["If-None-Match": tag]).status == 304)
                    // The result is that of the fields.
                    let plain = try await client.send(.get, "/v1/render?source=initials:A&width=40&format=png")
                    #expect(plain.headers["ETag"] == tag)
                    let query = try await client.send(.get, "/v1/render?source=initials:A&preset=card")
                    #expect(query.headers["ETag"] == tag)
                    let high = try await client.send(.get, path + "&height=20")
                    #expect(high.status == 200 && high.headers["ETag"] != tag)
                    let wide = try await client.send(.get, path + "&width=80")
                    #expect(wide.status == 400)
                    #expect(
                        wide.json["detail"] as? String
                            == "width: cannot be set in a job with the preset card; it allows quality, height")
                    #expect(try await client.send(.get, path + "&preset=other").status == 400)

                    let changed = #"{"job":{"width":50,"format":"png"}}"#
                    _ = try await client.send(.put, "/v1/presets/card", changed, headers: json)
                    try await until("the gateway has loaded the new version") {
                        try await client.send(.get, path).headers["ETag"] != tag
                    }
                    _ = try await client.send(.delete, "/v1/presets/card")
                    try await until("the preset is gone") { try await client.send(.get, path).status == 400 }
                }
            }
        }
    }

    @Test func submittedJobsMayNameAPreset() async throws {
        try await GatewayFixture.with { fixture in
            try await fixture.withWorker {
                try await fixture.withGateway { (client: GatewayClient) async throws in
                    let json = ["Content-Type": "application/json"] as HTTPFields
                    _ = try await client.send(.put, "/v1/presets/card", Self.card, headers: json)
                    let accepted = try await client.send(
                        .post, "/v1/jobs", #"{"id":"a","source":"initials:A","preset":"card"}"#)
                    #expect(accepted.status == 202)
                    let end = try await client.send(.get, "/v1/jobs/a?wait=500")
                    #expect(end.text.contains(#""preset":{"name":"card","version":1}"#))
                    let image = try #require((accepted.json["images"] as? [String])?.first)
                    #expect(try await client.send(.head, image).status == 200)
                    let refused = try await client.send(
                        .post, "/v1/jobs", #"{"source":"initials:A","preset":"card","width":9}"#)
                    #expect(refused.status == 400 && refused.json["code"] as? String == "invalid_job")
                }
            }
        }
    }

    /// Presets of one gateway are known to the others at once, because they ask Redis.
    @Test func signedURLsAuthorizeRenderingWithAPreset() async throws {
        let secret = Array("an old secret of 32 bytes or more".utf8)
        let signer = URLSigner(keys: ["1": secret], requiresExpiry: false)
        try await GatewayFixture.with { fixture in
            try await fixture.withWorker {
                try await fixture.withGateway({
                    $0.access.keys = [APIKey(name: "k", secret: "k", scopes: [.admin])]
                    ($0.access.urlKeys, $0.access.requiresExpiry) = (["1": secret], false)
                }) { (client: GatewayClient) async throws in
                    let key = ["X-API-Key": "k", "Content-Type": "application/json"] as HTTPFields
                    #expect(try await client.send(.put, "/v1/presets/card", Self.card, headers: key).status == 200)
                    let path = "/v1/render/preset/card?source=initials:A"
                    #expect(try await client.send(.get, path).status == 401)
                    let signed = try #require(signer.sign(path, keyId: "1", expires: nil))
                    #expect(try await client.send(.get, signed).status == 200)
                    let other = signed.replacing("/card?", with: "/list?")
                    #expect(try await client.send(.get, other).status == 403)
                    #expect(try await client.send(.get, signed + "&height=9").status == 403)
                }
            }
        }
    }

    @Test func gatewaysThatAcceptOnlyPresetsRefuseOtherJobs() async throws {
        let fixed = try Preset("card", json: Array(Self.card.utf8))
        try await GatewayFixture.with { fixture in
            try await fixture.withWorker({ $0.presets = [fixed] }) {
                try await fixture.withGateway({
                    $0.presets = [fixed]
                    $0.reader.requiresPreset = true
                }) { (client: GatewayClient) async throws in
                    let refused = try await client.send(.get, "/v1/render?source=initials:A&width=8")
                    #expect(refused.status == 400 && refused.json["code"] as? String == "invalid_job")
                    let job = #"{"source":"initials:A","width":8}"#
                    #expect(try await client.send(.post, "/v1/jobs", job).status == 400)
                    #expect(
                        try await client.send(.get, "/v1/render/preset/card?source=initials:A").status == 200)
                    // Purges do not need a preset.
                    #expect(try await client.send(.post, "/v1/purge", #"{"source":"initials:A"}"#).status == 200)
                }
            }
        }
    }

    /// A preset with a fixed format keeps it. Otherwise clients get a format that they accept.
    @Test func choosesTheFormatOnlyIfItIsOverridable() async throws {
        let presets = try [
            Preset("fixed", json: Array(#"{"job":{"width":8,"format":"png"}}"#.utf8)),
            Preset("open", json: Array(#"{"job":{"width":8},"overridable":["format"]}"#.utf8)),
            Preset("auto", json: Array(#"{"job":{"width":8}}"#.utf8)),
            Preset("gif", json: Array(#"{"job":{"width":8,"format":"gif"},"overridable":["format"]}"#.utf8)),
        ]
        try await GatewayFixture.with { fixture in
            try await fixture.withWorker({ $0.presets = presets }) {
                try await fixture.withGateway({ $0.presets = presets }) { (client: GatewayClient) async throws in
                    for (name, type) in [("fixed", "png"), ("open", "webp"), ("auto", "png"), ("gif", "gif")] {
                        let image = try await client.send(
                            .get, "/v1/render/preset/\(name)?source=initials:A", headers: ["Accept": "image/webp,*/*"])
                        #expect(image.headers["Content-Type"] == "image/\(type)", "\(name)")
                    }
                }
            }
        }
    }

    @Test func unknownPresetsAreUnavailableWithoutRedis() async throws {
        try await GatewayFixture.with { fixture in
            try await fixture.withGateway { (client: GatewayClient) async throws in
                await fixture.redis.stop()
                #expect(
                    try await client.send(.get, "/v1/render/preset/card?source=initials:A").status == 503)
                #expect(try await client.send(.get, "/v1/presets").status == 503)
            }
        }
    }
}
