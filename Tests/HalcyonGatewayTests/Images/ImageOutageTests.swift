import HalcyonCluster
import HalcyonModel
import Redis
import TestSupport
import Testing

@testable import HalcyonGateway

/// Images that Redis cannot tell of.
@Suite(.takesTurns) struct ImageOutageTests {
    @Test func withoutRedisTheyCannotBeHadNow() async throws {
        var settings = RedisSettings()
        (settings.commandTimeout, settings.connectTimeout, settings.outageGrace) = (.seconds(1), .seconds(1), .zero)
        try await ImageGround.with(.server, AccessOptions(), settings) { setting in
            _ = try? await setting.tier.store(
                ImageGround.body, ImageGround.facts(ImageGround.body), as: ImageGround.key, for: 600, by: .response)
            await setting.server.stop()
            try await until("the connection is lost") { try await setting.get(ImageGround.key).status == 503 }
            for method in ["GET", "HEAD"] {
                let answer = try await setting.ask(method, ImageGround.key)
                #expect(answer.status == 503 && answer.headers["retry-after"] == "1")
            }
            let handOff = ResultTier.handOffKey(for: try #require(ResultKey(ImageGround.key)))
            let answer = try await setting.get(handOff)
            #expect(answer.status == 503 && !answer.text.contains("127.0.0.1"))
        }
    }

    @Test func whatRedisCannotTellIsNoMiss() async throws {
        try await ImageGround.with { setting in
            _ = try await setting.redis.send(["SET", .string(ImageGround.key), "a string"])
            #expect(try await setting.get(ImageGround.key).status == 503)
        }
    }
}
