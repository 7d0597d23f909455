import Redis
import Subprocess
import TestSupport
import Testing

@testable import HalcyonCLI

/// The findings of `halcyon doctor` for each kind of Redis deployment.
@Suite(.limitedParallelism) struct RedisCheckTests {
    private func findings(_ address: String) async throws -> [DoctorReport] {
        await RedisCheck(endpoint: try RedisEndpoint(address)).findings()
    }

    /// Returns the findings once this number of servers answers. On a busy machine, connecting may take too long.
    private func findings(_ address: String, answering count: Int) async throws -> [DoctorReport] {
        try await firstValue("\(count) servers answer") { () async throws -> [DoctorReport]? in
            let found = try await findings("\(address)?timeout=60s")
            return messages(found, "Redis", .ok).count == count ? found : nil
        }
    }

    private func messages(_ findings: [DoctorReport], _ subject: String, _ level: DoctorReport.Level) -> [String] {
        findings.filter { $0.subject == subject && $0.level == level }.map(\.message)
    }

    @Test func checksEveryPrimaryOfACluster() async throws {
        let cluster = try await RedisClusterServer.start(["--maxmemory", "1gb", "--maxmemory-policy", "volatile-ttl"])
        for node in cluster.nodes.dropFirst() {
            _ = try await node.run("CONFIG", "SET", "maxmemory-policy", "noeviction")
        }
        let healthy = try await findings(cluster.url, answering: 3)
        let versions = messages(healthy, "Redis", .ok)
        #expect(versions.count == 3 && versions.allSatisfy { $0.hasPrefix("primary, version ") })
        #expect(messages(healthy, "memory", .ok).count == 1)
        #expect(messages(healthy, "memory", .ok)[0].hasPrefix("127.0.0.1:\(cluster.nodes[0].port): "))
        #expect(messages(healthy, "memory", .warning).count == 2)
        #expect(messages(healthy, "cluster", .ok) == ["3 primary nodes, 0 replicas, 16384 of 16384 slots served"])

        _ = try await cluster.nodes[0].run("CONFIG", "SET", "cluster-require-full-coverage", "yes")
        let strict = try await findings(cluster.url, answering: 3)
        #expect(
            messages(strict, "cluster", .warning) == ["if one primary is unavailable, the others refuse commands too"])
        _ = try await cluster.nodes[0].run("CONFIG", "SET", "cluster-require-full-coverage", "no")

        await cluster.kill(2)
        let lost = cluster.nodes[2].port
        try await cluster.setNodeTimeout(.seconds(2))
        try await until("the other nodes have noticed the failure") {
            try await cluster.nodes[0].run("CLUSTER", "NODES").contains("master,fail ")
        }
        let broken = try await findings(cluster.url, answering: 2)
        #expect(messages(broken, "Redis", .ok).count == 2)
        #expect(messages(broken, "Redis", .broken).first?.contains("127.0.0.1:\(lost)") == true)
        #expect(messages(broken, "cluster", .broken).first?.contains("of 16384 slots served") == true)
        #expect(messages(broken, "cluster", .warning) == ["the primary at 127.0.0.1:\(lost) is unavailable"])
        await cluster.stop()
    }

    @Test func checksThePrimaryAndTheSentinels() async throws {
        let deployment = try await RedisSentinels.start()
        let address = "redis+sentinel://\(deployment.hosts)/\(RedisSentinels.service)"
        let healthy = try await findings(address, answering: 1)
        #expect(messages(healthy, "sentinels", .ok) == ["3 available"])
        let primary = try #require(messages(healthy, "Redis", .ok).first)
        #expect(
            primary.hasPrefix("primary of images, version ")
                && primary.hasSuffix("127.0.0.1:\(deployment.servers[0].port)"))
        await deployment.sentinels[1].stop()
        let incomplete = try await findings(address, answering: 1)
        #expect(messages(incomplete, "sentinels", .warning).first?.contains("\(deployment.sentinels[1].port)") == true)
        #expect(messages(incomplete, "Redis", .ok).count == 1)
        await deployment.stop()
    }

    @Test func reportsUnreachableRedis() async throws {
        let unused = LoopbackPort.reserve()
        for address in ["redis+cluster://127.0.0.1:\(unused)", "redis+sentinel://127.0.0.1:\(unused)/images"] {
            let found = try await findings(address)
            #expect(found.map(\.level) == [.broken] && found[0].message.contains(address))
        }
    }
}
