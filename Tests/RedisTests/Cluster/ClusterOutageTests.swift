import Concurrency
import Glibc
import Subprocess
import TestSupport
import Testing

@testable import Redis

/// Primaries that fail, come back, or are replaced.
@Suite(.limitedParallelism, .extended) struct ClusterOutageTests {
    /// Returns a key of each node's slots, by the number of the node.
    private func keys(_ cluster: RedisClusterServer) async throws -> [String] {
        var keys = Array(repeating: "", count: cluster.nodes.count)
        for candidate in (0..<60).map({ "k\($0)" }) {
            let owner = try await cluster.owner(of: HashSlot(of: .string(candidate)).number)
            keys[cluster.nodes.firstIndex { $0.port == owner.port }!] = candidate
            if keys[..<cluster.masterCount].allSatisfy({ !$0.isEmpty }) { break }
        }
        return keys
    }

    @Test func lostPrimaryDoesNotAffectOthers() async throws {
        let log = StateLog()
        try await withCluster(settings: quickReconnects, onStateChange: log.record) { cluster, client in
            let keys = try await keys(cluster)
            for key in keys { _ = try await client.send("SET", .string(key), .string(key)) }
            await cluster.kill(1)
            let end = ContinuousClock.now + .seconds(5)
            let dead = Task {
                () async throws -> Set<RedisError.Code> in
                var codes: Set<RedisError.Code> = []
                while ContinuousClock.now < end {
                    do {
                        _ = try await client.send("GET", .string(keys[1]))
                        Issue.record("a dead primary answers")
                    } catch let error as RedisError {
                        #expect(error.isRetriable, "\(error)")
                        codes.insert(error.code)
                    }
                }
                return codes
            }
            while ContinuousClock.now < end {
                #expect(try await client.send("GET", .string(keys[0])).string == keys[0])
                #expect(try await client.send("GET", .string(keys[2])).string == keys[2])
                #expect(try await client.send("PING") == .status("PONG"))
            }
            #expect(try await dead.value.subtracting([.unavailable, .connectionLost]).isEmpty)

            let replies = try await client.pipeline(keys.map { ["GET", .string($0)] })
            #expect([replies[0].string, replies[2].string] == [keys[0], keys[2]])
            guard case .error(let error) = replies[1] else { throw RedisError(.protocolError, "\(replies)") }
            #expect(error.code == .unavailable && error.message.contains("refused"))
            await expectFailure(.unavailable) {
                try await client.pipeline([["GET", .string(keys[1])], ["GET", .string(keys[1])]])
            }
            let outcomes = try await client.sendToAllPrimaries(["PING"])
            #expect(outcomes.count == 3 && outcomes.filter { (try? $0.outcome.get()) != nil }.count == 2)
            guard log.states.count == 2, case .impaired(let reported) = log.states[1] else {
                throw RedisError(.protocolError, "states: \(log.states)")
            }
            #expect(log.states[0] == .connected && reported.message.contains("\(cluster.nodes[1].port)"))

            try await cluster.revive(1)
            try await until("the primary is back") { try await client.send("GET", .string(keys[1])) == .null }
            try await until("the recovery is reported") { log.states.count == 3 && log.states[2] == .connected }
        }
    }

    @Test func failsFastAfterOutageGrace() async throws {
        var settings = quickReconnects
        settings.outageGrace = .milliseconds(300)
        try await withCluster(settings: settings) { cluster, client in
            let keys = try await keys(cluster)
            for key in keys { _ = try await client.send("GET", .string(key)) }
            await cluster.kill(2)
            var slow = 0
            for _ in 0..<40 {
                let start = ContinuousClock.now
                await expectRetriableFailure { try await client.send("GET", .string(keys[2])) }
                if start.duration(to: .now) >= settings.outageGrace { slow += 1 }
            }
            // One or a few wait for the grace period. A busy machine delays a few more.
            #expect(slow < 20)
        }
    }

    /// A primary that dies, and one that hangs.
    @Test(arguments: [SIGKILL, SIGSTOP]) func followsFailover(signal: Int32) async throws {
        let log = StateLog()
        try await withCluster(replicas: 1, settings: shortTimeouts, onStateChange: log.record) { cluster, client in
            let keys = try await keys(cluster)
            for key in keys.prefix(3) { _ = try await client.reply(to: "SET", .string(key), .string(key)) }
            try await until("its replica has the key") {
                for node in cluster.nodes[3...] where try await node.run("KEYS", "*").contains(keys[0]) { return true }
                return false
            }
            cluster.nodes[0].process.send(signal)
            try await until("the replica is promoted") {
                let old = try await client.send("GET", .string(keys[0])).string
                let answer = try await client.send("SET", .string(keys[0]), "new")
                return [keys[0], "new"].contains(old) && answer == .status("OK")
            }
            #expect(try await client.reply(to: "GET", .string(keys[1])).string == keys[1])
            try await until("the cluster is connected again") { log.states.last == .connected }
            if signal == SIGSTOP {
                cluster.nodes[0].process.send(SIGCONT)
                try await until("the old primary replicates the new one") {
                    try await cluster.nodes[0].run("INFO", "replication").contains("role:slave")
                }
                #expect(try await client.reply(to: "GET", .string(keys[0])).string == "new")
            }
        }
    }

    @Test func reconnectsAfterWholeClusterOutage() async throws {
        let log = StateLog()
        try await withCluster(settings: quickReconnects, onStateChange: log.record) { cluster, client in
            let keys = try await keys(cluster)
            for key in keys { _ = try await client.send("SET", .string(key), 1) }
            for number in 0..<3 { await cluster.kill(number) }
            try await until("the outage is reported") { if case .lost? = log.states.last { true } else { false } }
            await expectRetriableFailure { try await client.send("GET", .string(keys[0])) }
            for number in 0..<3 { try await cluster.revive(number) }
            try await until("all primaries are back") {
                for key in keys { _ = try await client.send("SET", .string(key), 1) }
                return log.states.last == .connected
            }
        }
    }

    /// Expects a retriable failure.
    private func expectRetriableFailure(_ body: () async throws -> RedisValue) async {
        do { Issue.record("\(try await body()) instead of a failure") } catch {
            #expect((error as? RedisError)?.isRetriable == true, "\(error)")
        }
    }
}
