import Concurrency
import Glibc
import Subprocess
import TestSupport
import Testing

@testable import Redis

/// Masters that go, come back, or are replaced.
@Suite(.limitedParallelism) struct ClusterOutageTests {
    /// A key of each node's slots, by the number of the node.
    private func keys(_ cluster: RedisClusterServer) async throws -> [String] {
        var keys = Array(repeating: "", count: cluster.nodes.count)
        for candidate in (0..<60).map({ "k\($0)" }) {
            let owner = try await cluster.owner(of: HashSlot(of: .string(candidate)).number)
            keys[cluster.nodes.firstIndex { $0.port == owner.port }!] = candidate
            if keys[..<cluster.masterCount].allSatisfy({ !$0.isEmpty }) { break }
        }
        return keys
    }

    @Test func aLostMasterHarmsNoOther() async throws {
        let log = StateLog()
        try await withCluster(settings: impatient, onStateChange: log.note) { cluster, client in
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
                        Issue.record("a dead master answers")
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
            let words = try await client.sendToAllPrimaries(["PING"])
            #expect(words.count == 3 && words.filter { (try? $0.outcome.get()) != nil }.count == 2)
            guard log.states.count == 2, case .impaired(let told) = log.states[1] else {
                throw RedisError(.protocolError, "told \(log.states)")
            }
            #expect(log.states[0] == .connected && told.message.contains("\(cluster.nodes[1].port)"))

            try await cluster.revive(1)
            try await until("it is back") { try await client.send("GET", .string(keys[1])) == .null }
            try await until("that is told") { log.states.count == 3 && log.states[2] == .connected }
        }
    }

    @Test func failsAtOnceWhenTheGraceIsOver() async throws {
        var settings = impatient
        settings.outageGrace = .milliseconds(300)
        try await withCluster(settings: settings) { cluster, client in
            let keys = try await keys(cluster)
            for key in keys { _ = try await client.send("GET", .string(key)) }
            await cluster.kill(2)
            let start = ContinuousClock.now
            var failures = 0
            while ContinuousClock.now < start + .seconds(2) {
                await expectAny { try await client.send("GET", .string(keys[2])) }
                failures += 1
            }
            // One or a few waited for the grace; the others could not have been so many.
            #expect(failures > 20)
        }
    }

    /// A master that dies, and one that stands still.
    @Test(arguments: [SIGKILL, SIGSTOP]) func aReplacedMasterIsFollowed(signal: Int32) async throws {
        let log = StateLog()
        try await withCluster(replicas: 1, settings: impatient, onStateChange: log.note) { cluster, client in
            let keys = try await keys(cluster)
            for key in keys.prefix(3) { _ = try await client.send("SET", .string(key), .string(key)) }
            try await until("its replica has it") {
                for node in cluster.nodes[3...] where try await node.tell("KEYS", "*").contains(keys[0]) { return true }
                return false
            }
            cluster.nodes[0].process.send(signal)
            try await until("the replica serves") {
                let old = try await client.send("GET", .string(keys[0])).string
                let answer = try await client.send("SET", .string(keys[0]), "new")
                return [keys[0], "new"].contains(old) && answer == .status("OK")
            }
            #expect(try await client.send("GET", .string(keys[1])).string == keys[1])
            try await until("all is well again") { log.states.last == .connected }
            if signal == SIGSTOP {
                cluster.nodes[0].process.send(SIGCONT)
                try await until("the old master follows the new one") {
                    try await cluster.nodes[0].tell("INFO", "replication").contains("role:slave")
                }
                #expect(try await client.send("GET", .string(keys[0])).string == "new")
            }
        }
    }

    @Test func aClusterThatIsGoneIsWaitedFor() async throws {
        let log = StateLog()
        try await withCluster(settings: impatient, onStateChange: log.note) { cluster, client in
            let keys = try await keys(cluster)
            for key in keys { _ = try await client.send("SET", .string(key), 1) }
            for number in 0..<3 { await cluster.kill(number) }
            try await until("that is told") { if case .lost? = log.states.last { true } else { false } }
            await expectAny { try await client.send("GET", .string(keys[0])) }
            for number in 0..<3 { try await cluster.revive(number) }
            try await until("all are back") {
                for key in keys { _ = try await client.send("SET", .string(key), 1) }
                return log.states.last == .connected
            }
        }
    }

    /// Expects a failure that another attempt may mend.
    private func expectAny(_ body: () async throws -> RedisValue) async {
        do { Issue.record("\(try await body()) in place of a failure") } catch {
            #expect((error as? RedisError)?.isRetriable == true, "\(error)")
        }
    }
}
