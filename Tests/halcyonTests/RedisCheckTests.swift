import Redis
import Subprocess
import TestSupport
import Testing

@testable import HalcyonCLI

/// What the doctor says of Redis, of each kind.
@Suite(.limitedParallelism) struct RedisCheckTests {
    private func findings(_ address: String) async throws -> [DoctorReport] {
        await RedisCheck(endpoint: try RedisEndpoint(address)).findings()
    }

    private func messages(_ findings: [DoctorReport], _ subject: String, _ level: DoctorReport.Level) -> [String] {
        findings.filter { $0.subject == subject && $0.level == level }.map(\.message)
    }

    @Test func looksAtEveryMasterOfACluster() async throws {
        let cluster = try await RedisClusterServer.start(["--maxmemory", "1gb", "--maxmemory-policy", "volatile-ttl"])
        for node in cluster.nodes.dropFirst() {
            _ = try await node.tell("CONFIG", "SET", "maxmemory-policy", "noeviction")
        }
        let well = try await findings(cluster.url)
        let versions = messages(well, "Redis", .ok)
        #expect(versions.count == 3 && versions.allSatisfy { $0.hasPrefix("primary, version ") })
        #expect(messages(well, "memory", .ok).count == 1)
        #expect(messages(well, "memory", .ok)[0].hasPrefix("127.0.0.1:\(cluster.nodes[0].port): "))
        #expect(messages(well, "memory", .warning).count == 2)
        #expect(messages(well, "cluster", .ok) == ["3 primary nodes, 0 replicas, 16384 of 16384 slots served"])

        _ = try await cluster.nodes[0].tell("CONFIG", "SET", "cluster-require-full-coverage", "yes")
        let brittle = try await findings(cluster.url)
        #expect(
            messages(brittle, "cluster", .warning) == ["if one primary is unavailable, the others refuse commands too"])
        _ = try await cluster.nodes[0].tell("CONFIG", "SET", "cluster-require-full-coverage", "no")

        await cluster.kill(2)
        let lost = cluster.nodes[2].port
        try await until("the others have noticed") {
            try await cluster.nodes[0].tell("CLUSTER", "NODES").contains("master,fail ")
        }
        let broken = try await findings(cluster.url)
        #expect(messages(broken, "Redis", .ok).count == 2)
        #expect(messages(broken, "Redis", .broken).first?.contains("127.0.0.1:\(lost)") == true)
        #expect(messages(broken, "cluster", .broken).first?.contains("of 16384 slots served") == true)
        #expect(messages(broken, "cluster", .warning) == ["the primary at 127.0.0.1:\(lost) is unavailable"])
        await cluster.stop()
    }

    @Test func looksAtTheMasterAndTheSentinels() async throws {
        let all = try await RedisSentinels.start()
        let address = "redis+sentinel://\(all.hosts)/\(RedisSentinels.service)"
        let well = try await findings(address)
        #expect(messages(well, "sentinels", .ok) == ["3 available"])
        let master = try #require(messages(well, "Redis", .ok).first)
        #expect(master.hasPrefix("primary of images, version ") && master.hasSuffix("127.0.0.1:\(all.servers[0].port)"))
        await all.sentinels[1].stop()
        let lacking = try await findings(address)
        #expect(messages(lacking, "sentinels", .warning).first?.contains("\(all.sentinels[1].port)") == true)
        #expect(messages(lacking, "Redis", .ok).count == 1)
        await all.stop()
    }

    @Test func saysThatNobodyAnswers() async throws {
        let away = LoopbackPort.free()
        for address in ["redis+cluster://127.0.0.1:\(away)", "redis+sentinel://127.0.0.1:\(away)/images"] {
            let found = try await findings(address)
            #expect(found.map(\.level) == [.broken] && found[0].message.contains(address))
        }
    }
}
