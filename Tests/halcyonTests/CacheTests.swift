import HalcyonModel
import JSON
import Redis
import TestSupport
import Testing

/// `get`, `trim` and the cache options, on a cluster of `halcyon dev`.
@Suite(.devCluster, .limitedParallelism) struct CacheTests {
    private var cluster: DevClusterFixture { DevClusterFixture.current }

    private func withRedis(_ body: (RedisClient) async throws -> Void) async throws {
        let client = RedisClient(RedisEndpoint(loopbackPort: cluster.redisPort, timeout: .seconds(60)))
        let result: Result<Void, any Error>
        do { result = .success(try await body(client)) } catch { result = .failure(error) }
        await client.close()
        try result.get()
    }

    @Test func getFindsOnlyStoredResults() async throws {
        let url = cluster.url("coffee.jpg")
        let sizing = [url, "--width", "77", "--tenant", "looker"]
        let miss = try await run(["get"] + sizing + ["--head"]).expect(3)
        #expect(miss.bytes.isEmpty && miss.errors.contains("no result under halcyon:{"))
        try await run(["submit"] + sizing + ["--wait"]).expect(0)
        let head = try await run(["get"] + sizing + ["--head"]).expect(0)
        #expect(head.output.hasPrefix("77x") && head.output.contains("fresh until 20"))
        let facts = try await run(["get"] + sizing + ["--head", "--json"]).expect(0).json()
        #expect(facts[0].at("result", "width") == "77" && facts[0].at("expiresAt") != nil)
        // The results of another tenant, and of no tenant, are different results.
        try await cluster.run("get", url, "--width", "77", "--tenant", "other", "--head").expect(3)
        try await cluster.run("get", url, "--width", "77", "--head").expect(3)
    }

    @Test func getDoesNotAffectTheEvictionOrder() async throws {
        let url = cluster.url("rocket.jpg")
        for width in ["31", "32"] {
            try await cluster.run("submit", url, "--width", width, "--tenant", "order", "--wait").expect(0)
        }
        try await withRedis { redis in
            let before = try await redis.send("ZRANGE", "halcyon:{budget:order}:used", 0, -1, "WITHSCORES")
            #expect(before.array?.count == 4)
            for option in ["--head", "--json", "--output=-"] {
                try await cluster.run("get", url, "--width", "31", "--tenant", "order", option).expect(0)
            }
            // A later hit by a job: once it is recorded, earlier uses would be recorded too.
            try await cluster.run("submit", url, "--width", "32", "--tenant", "order", "--wait").expect(0)
            try await until("the hit is recorded") {
                try await redis.send("ZRANGE", "halcyon:{budget:order}:used", 0, -1, "WITHSCORES") != before
            }
            let after = try await redis.send("ZRANGE", "halcyon:{budget:order}:used", 0, -1).array
            #expect(after?[0] == before.array?[0] && after?[1] == before.array?[2])
        }
    }

    @Test func getReadsAHandOffOnce() async throws {
        let sent = try await cluster.run(
            "submit", cluster.url("chelsea.jpg"), "--width", "40", "--no-memory-cache", "--wait", "--json"
        ).expect(0).json()
        // The image fits into its event, so the test stores a hand-off like a worker.
        try await cluster.run("get", try #require(sent[0].at("key")), "--head").expect(3)
        try await withRedis { redis in
            let key = "halcyon:{00}:handoff:0123456789abcdef"
            let facts =
                #"{"width":4,"height":3,"format":"png","bytes":3,"sha256":"ab","source":{"bytes":9,"format":"png","width":4,"height":3}}"#
            _ = try await redis.send(
                "HSET", .string(key), "body", "abc", "facts", .string(facts), "expiresAt", "4000000000000")
            for _ in 0..<2 { try await cluster.run("get", key, "--head").expect(0) }
            try await cluster.run("get", key, "--json").expect(0)
            #expect(try await cluster.run("get", key).expect(0).output == "abc")
            try await cluster.run("get", key).expect(3)
        }
    }

    @Test func cacheOptionsControlCacheUse() async throws {
        let sizing = [cluster.url("astronaut.jpg"), "--width", "45", "--tenant", "user"]
        func origin(_ options: String...) async throws -> String? {
            let events = try await run(["submit"] + sizing + options + ["--wait", "--json"])
            return try events.json().first?.at("outcome")
        }
        #expect(try await origin("--only-if-cached") == "failed")
        #expect(try await origin("--no-memory-cache") == "ready")
        try await run(["get"] + sizing + ["--head"]).expect(3)
        #expect(try await origin("--no-source-cache") == "ready")
        let first = try await run(["get"] + sizing + ["--head", "--json"]).expect(0).json()[0].at("expiresAt")
        #expect(try await origin("--only-if-cached") == "ready")
        #expect(try await origin("--reload") == "ready")
        #expect(try await run(["get"] + sizing + ["--head", "--json"]).expect(0).json()[0].at("expiresAt") != first)
    }

    @Test func cacheFlagKeepsOtherMembersOfTheJobFile() async throws {
        let job = #"{"source": "\#(cluster.url("rocket.jpg"))", "width": 51, "cache": {"memory": false}}"#
        try await cluster.run("submit", "--job", "-", "--reload", "--wait", input: job).expect(0)
        try await cluster.run("get", cluster.url("rocket.jpg"), "--width", "51", "--head").expect(3)
    }

    @Test func trimRemovesTheLeastRecentlyUsed() async throws {
        let url = cluster.url("chelsea.jpg")
        for width in ["61", "62", "63"] {
            try await cluster.run("submit", url, "--width", width, "--tenant", "trim.me", "--wait").expect(0)
        }
        let nothing = try await cluster.run("trim", "--tenant", "trim.me", "--bytes", "1GiB", "--json").expect(0)
            .json()[0]
        #expect(nothing.at("removed", "count") == "0" && nothing.at("left", "count") == "3")
        let trimmed = try await cluster.run("trim", "--tenant", "trim.me", "--count", "1", "--json").expect(0).json()[0]
        #expect(trimmed.at("tenant") == "trim.me")
        #expect(trimmed.at("removed", "count") == "2" && trimmed.at("left", "count") == "1")
        for (width, code) in [("61", 3), ("62", 3), ("63", 0)] as [(String, Int32)] {
            try await cluster.run("get", url, "--width", width, "--tenant", "trim.me", "--head").expect(code)
        }
        let all = try await cluster.run("trim", "--tenant", "trim.me", "--pixels", "0").expect(0).output
        #expect(all.hasPrefix("removed 1 result (") && all.contains("left 0 results (0 B, 0 pixels)"))
        try await cluster.run("trim", "--tenant", "nobody", "--count", "0").expect(0)
    }

    private func run(_ arguments: [String]) async throws -> Run {
        try await Executable.run(arguments, environment: cluster.environment)
    }
}
