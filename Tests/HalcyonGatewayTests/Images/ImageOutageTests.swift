import HalcyonCluster
import HalcyonModel
import Redis
import TestSupport
import Testing

@testable import HalcyonGateway

/// Images that Redis cannot tell of.
@Suite(.limitedParallelism) struct ImageOutageTests {
    @Test func withoutRedisTheyCannotBeHadNow() async throws {
        var settings = RedisSettings()
        (settings.commandTimeout, settings.connectTimeout, settings.outageGrace) = (.seconds(1), .seconds(1), .zero)
        try await ImageFixture.with(.server, AccessOptions(), settings) { setting in
            _ = try? await setting.tier.store(
                ImageFixture.body, ImageFixture.facts(ImageFixture.body), as: ImageFixture.key, for: 600, by: .response)
            await setting.server.stop()
            try await until("the connection is lost") { try await setting.get(ImageFixture.key).status == 503 }
            for method in ["GET", "HEAD"] {
                let answer = try await setting.ask(method, ImageFixture.key)
                #expect(answer.status == 503 && answer.headers["retry-after"] == "1")
            }
            let handOff = ResultCache.handOffKey(for: try #require(ResultKey(ImageFixture.key)))
            let answer = try await setting.get(handOff)
            #expect(answer.status == 503 && !answer.text.contains("127.0.0.1"))
        }
    }

    @Test func whatRedisCannotTellIsNoMiss() async throws {
        try await ImageFixture.with { setting in
            _ = try await setting.redis.send(["SET", .string(ImageFixture.key), "a string"])
            #expect(try await setting.get(ImageFixture.key).status == 503)
        }
    }
}
