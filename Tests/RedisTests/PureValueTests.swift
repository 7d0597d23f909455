import Testing

@testable import Redis

@Suite struct PureValueTests {
    @Test(arguments: [
        ("", "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
        ("abc", "a9993e364706816aba3e25717850c26c9cd0d89d"),
        (
            "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "84983e441c3bd26ebaae4aa1f95129e5e54670f1"
        ),
        (String(repeating: "a", count: 1_000), "291e9a6c66994949b57ba5e650361e98fc36b1ba"),
    ])
    func computesSHA1OfScripts(text: String, digest: String) {
        #expect(RedisScript(text).sha1 == digest)
    }

    @Test func reconnectBackoffGrowsUpToALimit() {
        var settings = RedisSettings()
        settings.reconnectDelay = .milliseconds(50)...(.seconds(1))
        var backoff = settings.reconnectBackoff
        for longest in [50, 100, 200, 400, 800, 1000, 1000] {
            #expect((Duration.milliseconds(longest) / 2 ... .milliseconds(longest)).contains(backoff.next()))
        }
        var short = settings.reconnectBackoff(upTo: .milliseconds(10))
        for _ in 0..<5 { #expect(short.next() <= .milliseconds(50)) }
    }

    @Test func graceRestartsOnlyAfterALostConnection() {
        let start = ContinuousClock.now
        var outage = OutageState(grace: .seconds(1), now: start)
        outage.note(RedisError(.unavailable, "refused"), hadConnection: false, now: start + .seconds(5))
        #expect(outage.graceEnd == start + .seconds(1))
        outage.note(RedisError(.unavailable, "reset"), hadConnection: true, now: start + .seconds(9))
        #expect(outage.graceEnd == start + .seconds(10))
        #expect(outage.error.message.contains("reset"))
    }

    @Test func rejoinedChannelWaitsForTheLastConfirmation() {
        let member = Subscription("news", limit: 1) { _ in }
        var channel = SubscriptionConnection()
        let mustAsk = channel.join(member)
        channel.askedToSubscribe()
        let mustLeave = channel.leave(member)
        channel.askedToUnsubscribe()
        #expect(!channel.isForgotten)
        let mustAskAgain = channel.join(member)
        #expect([mustAsk, mustLeave, mustAskAgain] == [true, true, true])
        channel.askedToSubscribe()
        channel.confirmed()
        #expect(!channel.isSubscribed)
        channel.confirmed()
        #expect(channel.isSubscribed)
    }

    @Test func onlyTransientErrorsAreRetriable() {
        for code in [RedisError.Code.unavailable, .connectionLost, .timeout, .server("LOADING"), .server("READONLY")] {
            #expect(RedisError(code, "").isRetriable)
        }
        for code in [
            RedisError.Code.server("OOM"), .server("ERR"), .server("WRONGTYPE"), .cancelled, .closed, .protocolError,
        ] {
            #expect(!RedisError(code, "").isRetriable)
        }
    }
}
