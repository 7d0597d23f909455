import Concurrency
import TestSupport
import Testing

@testable import Redis

/// Slots that migrate from one primary to another.
@Suite(.limitedParallelism, .extended) struct MigrationTests {
    /// Returns how often a node has replied with an error, or received a command.
    private func count(_ name: String, of node: RedisServer) async throws -> Int {
        let info = try await node.run("INFO", "everything")
        let line = info.split(whereSeparator: \.isNewline).first { $0.hasPrefix("\(name):") }
        return line?.split(whereSeparator: { ":=,".contains($0) }).dropFirst(2).first.flatMap { Int($0) } ?? 0
    }

    @Test func followsAskRedirections() async throws {
        try await withCluster { cluster, client in
            let slot = HashSlot(of: "{tag}").number
            let source = try await cluster.owner(of: slot)
            let target = cluster.nodes.first { $0.port != source.port }!
            _ = try await client.send("SET", "{tag}1", "one")
            try await cluster.beginMove(of: slot, from: source, to: target)
            try await cluster.moveKeys(of: slot, from: source, to: target)
            #expect(try await client.send("GET", "{tag}1").string == "one")
            let mixed = try await client.pipeline([["SET", "{tag}2", "two"], ["GET", "{tag}2"], ["DEL", "{tag}1"]])
            #expect(mixed == [.status("OK"), .bytes(Array("two".utf8)), .integer(1)])
            #expect(try await count("errorstat_ASK", of: source) == 4)
            #expect(try await count("cmdstat_asking", of: target) == 4)

            // A transaction, and keys of which only one has migrated, must wait for the end of the migration.
            let several = Task { try await client.send("MGET", "{tag}2", "{tag}3") }
            let transaction = Task { try await client.pipeline([["MULTI"], ["INCR", "{tag}4"], ["EXEC"]]) }
            try await until("the transaction is refused") { try await count("errorstat_EXECABORT", of: source) > 0 }
            try await cluster.endMove(of: slot, from: source, to: target)
            #expect(try await several.value == .array([.bytes(Array("two".utf8)), .null]))
            #expect(try await transaction.value.last == .array([.integer(1)]))
        }
    }

    @Test func learnsMovedSlots() async throws {
        try await withCluster { cluster, client in
            let slot = HashSlot(of: "{tag}").number
            _ = try await client.send("SET", "{tag}1", "one")
            let source = try await cluster.owner(of: slot)
            let target = cluster.nodes.first { $0.port != source.port }!
            try await cluster.move(slot: slot, from: source, to: target)
            for _ in 0..<10 { #expect(try await client.send("GET", "{tag}1").string == "one") }
            #expect(try await count("errorstat_MOVED", of: source) == 1)
        }
    }

    @Test func losesAndRepeatsNothingDuringMigration() async throws {
        try await withCluster { cluster, client in
            let slot = HashSlot(of: "{tag}").number
            let script = RedisScript("return redis.call('INCR', KEYS[1])")
            let isOver = Lock(false)
            try await withThrowingTaskGroup(of: Int.self) { group in
                for number in 0..<20 {
                    group.addTask {
                        var rounds = 0
                        while !isOver.withLock({ $0 }) {
                            rounds += 1
                            // Keys of one slot, and one of another slot.
                            _ = try await client.send("INCR", "{tag}a\(number)")
                            _ = try await client.run(script, keys: ["{tag}b\(number)"])
                            let replies = try await client.pipeline([
                                ["INCR", "{tag}c\(number)"], ["INCR", "k\(number)"], ["GET", "{tag}c\(number)"],
                            ])
                            #expect(replies.map(\.integer) == [rounds, rounds, rounds])
                        }
                        return rounds
                    }
                }
                group.addTask {
                    var owner = try await cluster.owner(of: slot)
                    for number in 0..<9 {
                        let next = cluster.nodes[number % 3]
                        if next.port == owner.port { continue }
                        try await cluster.move(slot: slot, from: owner, to: next)
                        owner = next
                    }
                    isOver.withLock { $0 = true }
                    return 0
                }
                var rounds = 0
                for try await own in group { rounds += own }
                let sums = try await client.pipeline(
                    ["{tag}a", "{tag}b", "{tag}c", "k"].flatMap { key in (0..<20).map { ["GET", "\(key)\($0)"] } })
                let sum = sums.compactMap(\.integer).reduce(0, +)
                #expect(sum == rounds * 4)
                #expect(rounds > 20)
            }
            var redirected = 0
            for node in cluster.nodes {
                redirected += try await count("errorstat_MOVED", of: node) + count("errorstat_ASK", of: node)
            }
            #expect(redirected > 0)
        }
    }
}
