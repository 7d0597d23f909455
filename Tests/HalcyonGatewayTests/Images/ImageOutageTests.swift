import HalcyonCluster
import HalcyonModel
import Redis
import TestSupport
import Testing

@testable import HalcyonGateway

/// Images while Redis is down or returns errors.
@Suite(.limitedParallelism, .extended) struct ImageOutageTests {
    @Test func respondsWith503WhileRedisIsDown() async throws {
        var settings = RedisSettings()
        (settings.commandTimeout, settings.connectTimeout, settings.outageGrace) = (.seconds(1), .seconds(1), .zero)
        try await ImageFixture.with(.server, AccessOptions(), settings) { fixture in
            _ = try? await fixture.cache.store(
                ImageFixture.body, ImageFixture.metadata(ImageFixture.body), as: ImageFixture.key, for: 600,
                by: .response)
            await fixture.server.stop()
            try await until("the gateway has lost its connection") {
                try await fixture.get(ImageFixture.key).status == 503
            }
            for method in ["GET", "HEAD"] {
                let answer = try await fixture.ask(method, ImageFixture.key)
                #expect(answer.status == 503 && answer.headers["retry-after"] == "1")
            }
            let handOff = ResultCache.handOffKey(for: try #require(ResultKey(ImageFixture.key)))
            let answer = try await fixture.get(handOff)
            #expect(answer.status == 503 && !answer.text.contains("127.0.0.1"))
        }
    }

    @Test func redisErrorIsNotACacheMiss() async throws {
        try await ImageFixture.with { fixture in
            _ = try await fixture.redis.send(["SET", .string(ImageFixture.key), "a string"])
            #expect(try await fixture.get(ImageFixture.key).status == 503)
        }
    }
}
