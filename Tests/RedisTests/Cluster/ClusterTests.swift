import Glibc
import Subprocess
import TestSupport
import Testing

@testable import Redis

/// A healthy cluster of three primaries.
@Suite(.limitedParallelism) struct ClusterTests {
    @Test func sendsCommandsToThePrimaryOfTheirKey() async throws {
        try await withCluster { cluster, client in
            for number in 0..<300 { _ = try await client.send("SET", "key:\(number)", .integer(number)) }
            for number in 0..<300 { #expect(try await client.send("GET", "key:\(number)").integer == number) }
            let sizes = try await client.sendToAllPrimaries(["DBSIZE"])
            #expect(sizes.map(\.master).count == 3)
            let counts = try sizes.map { try $0.outcome.get().integer ?? 0 }
            #expect(counts.reduce(0, +) == 300 && counts.allSatisfy { $0 > 50 })
            // One connection to each node.
            for reply in try await client.sendToAllPrimaries(["CLIENT", "LIST", "TYPE", "normal"]) {
                let lines = try reply.outcome.get().string?.split(separator: "\n") ?? []
                #expect(lines.count == 1, "\(lines)")
            }
        }
    }

    @Test func agreesWithTheServerOnSlotsAndKeys() async throws {
        try await withCluster(masters: 3) { _, client in
            var keys = ["{}", "{a}{b}", "a{", "}{", "{{}}", "ä{ö}ü"].map { RedisArgument.string($0) }
            for length in [0, 1, 7, 100, 5_000] {
                keys.append(.bytes((0..<length).map { _ in UInt8.random(in: .min ... .max) }))
            }
            for key in keys {
                let slot = try await client.send("CLUSTER", "KEYSLOT", key).integer
                #expect(slot == HashSlot(of: key).number, "\(key)")
            }
            // COMMAND INFO: name, arity, flags, first key, last key, step.
            let table = try await client.send("COMMAND").array ?? []
            #expect(table.count > 200)
            for entry in table.compactMap(\.array) {
                guard let name = entry[0].string, let places = KeySpecification(of: name) else { continue }
                let (first, last, step) = (entry[3].integer, entry[4].integer, entry[5].integer)
                switch places {
                case .words(let ownFirst, let ownLast, let ownStep):
                    #expect([first, last, step] == [ownFirst, ownLast, ownStep] || first == 0, "\(name)")
                case .counted(_, let also): #expect(first == also ?? 0, "\(name)")
                case .anyNode, .oneNode, .transaction: #expect(first == 0, "\(name)")
                }
            }
        }
    }

    @Test func splitsPipelinesAndRestoresReplyOrder() async throws {
        try await withCluster { _, client in
            let count = 1_000
            let written = try await client.pipeline((0..<count).map { ["SET", "key:\($0)", .integer($0)] })
            #expect(written == Array(repeating: .status("OK"), count: count))
            var commands: [[RedisArgument]] = (0..<count).map { ["GET", "key:\($0)"] }
            commands.insert(["LPUSH", "key:1", "x"], at: 500)
            commands.insert(["PING"], at: 300)
            let replies = try await client.pipeline(commands)
            #expect(replies.count == count + 2)
            #expect(replies[300] == .status("PONG"))
            guard case .error(let error) = replies[501] else { throw RedisError(.protocolError, "\(replies[501])") }
            #expect(error.code == .server("WRONGTYPE"))
            let numbers = replies.compactMap { $0 == .status("PONG") ? nil : $0.integer }
            #expect(numbers == Array(0..<count))
        }
    }

    @Test func runsTransactionsOfOneSlot() async throws {
        try await withCluster { _, client in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<200 {
                    group.addTask {
                        let tag = "{\(number % 10)}"
                        let replies = try await client.pipeline([
                            ["GET", "other"], ["MULTI"], ["INCR", "\(tag)a"], ["INCR", "\(tag)b"], ["EXEC"],
                        ])
                        guard let results = replies.last?.array else { throw RedisError(.protocolError, "\(replies)") }
                        #expect(results[0] == results[1])
                    }
                }
                try await group.waitForAll()
            }
            for number in 0..<10 { #expect(try await client.send("GET", "{\(number)}a").integer == 20) }
        }
    }

    @Test func rejectsCommandsThatAClusterCannotRun() async throws {
        try await withCluster { _, client in
            await expectFailure(.misuse) { try await client.send("MGET", "a", "b") }
            await expectFailure(.misuse) { try await client.send("SCAN", 0) }
            await expectFailure(.misuse) { try await client.pipeline([["GET", "a"], ["MGET", "a", "b"]]) }
            let pong = try await client.send("PING")
            #expect(pong == .status("PONG"))
            await expectFailure(.server("ERR")) { try await client.send("SET", "a", "b", "c") }
        }
    }

    @Test func loadsScriptsOnEachNode() async throws {
        try await withCluster { _, client in
            let script = RedisScript("return redis.call('INCRBY', KEYS[1], ARGV[1])")
            for turn in 1...2 {
                for number in 0..<30 {
                    #expect(try await client.run(script, keys: ["k\(number)"], arguments: [5]).integer == 5 * turn)
                }
            }
            for reply in try await client.sendToAllPrimaries(["INFO", "commandstats"]) {
                #expect(try reply.outcome.get().string?.contains("cmdstat_eval:calls=1,") == true)
            }
        }
    }

    @Test func scansNodeByNode() async throws {
        try await withCluster { _, client in
            for number in 0..<100 { _ = try await client.send("SET", "k\(number)", 1) }
            var found: Set<String> = []
            for master in try await client.masters() {
                var cursor = RedisArgument.integer(0)
                repeat {
                    let parts = try await client.send(["SCAN", cursor, "COUNT", 10], to: master).array ?? []
                    found.formUnion(parts[1].array?.compactMap(\.string) ?? [])
                    cursor = .integer(parts[0].integer ?? 0)
                } while cursor != 0
            }
            #expect(found.count == 100)
        }
    }

    @Test func startsFromAnyReachableNode() async throws {
        try await withCluster { cluster, _ in
            let dead = LoopbackPort.reserve()
            let log = StateLog()
            let client = RedisClient(
                try RedisEndpoint("redis+cluster://127.0.0.1:\(dead),localhost:\(cluster.nodes[1].port)"),
                settings: .patient(), onStateChange: log.record)
            #expect(try await client.send("SET", "a", 1) == .status("OK"))
            #expect(try await client.masters().count == 3)
            #expect(log.states == [.connected])
            await client.close()
        }
    }

    @Test func reportsServerWithoutClusterSupport() async throws {
        let server = try await RedisServer.start()
        let error = try await refusal(by: RedisEndpoint("redis+cluster://127.0.0.1:\(server.port)"))
        #expect(error.message.contains("cluster support disabled"))
        await server.stop()
    }

    @Test func authenticatesAsUser() async throws {
        try await withCluster { cluster, _ in
            // A migrating slot requires ASKING.
            let slot = HashSlot(of: "{1}").number
            let source = try await cluster.owner(of: slot)
            try await cluster.beginMove(of: slot, from: source, to: cluster.nodes.first { $0.port != source.port }!)
            for node in cluster.nodes {
                // The permissions that a user needs according to docs/deployment.md.
                let rights =
                    "~halcyon:* &* +@read +@write +@connection +@scripting +@pubsub +time -@dangerous +cluster|slots"
                _ = try await node.run(
                    ["ACL", "SETUSER", "anna", "on", ">pass/word"] + rights.split(separator: " ").map(String.init))
                _ = try await node.run("ACL", "SETUSER", "default", "off")
            }
            let hosts = cluster.url.dropFirst("redis+cluster://".count)
            let client = RedisClient(
                try RedisEndpoint("redis+cluster://anna:pass%2Fword@\(hosts)"), settings: .patient())
            for number in 0..<10 {
                #expect(try await client.send("SET", "halcyon:{\(number)}", 1) == .status("OK"))
            }
            let script = RedisScript("return redis.call('SET', KEYS[1], redis.call('TIME')[1])")
            #expect(try await client.run(script, keys: ["halcyon:{1}"]) == .status("OK"))
            await expectFailure(.server("NOPERM")) { try await client.send("SET", "other", 1) }
            await expectFailure(.server("NOPERM")) { try await client.send(["FLUSHALL"], to: client.masters()[0]) }
            let subscriber = RedisSubscriber(
                try RedisEndpoint("redis+cluster://anna:pass%2Fword@\(hosts)"), settings: .patient())
            var messages = try await subscriber.subscribe("halcyon:news").makeAsyncIterator()
            _ = try await client.send("PUBLISH", "halcyon:news", "x")
            #expect(await messages.next()?.payload == [120])
            await subscriber.close()
            await client.close()

            let error = try await refusal(by: RedisEndpoint(cluster.url))
            #expect(error.code == .server("NOAUTH"))
        }
    }

    @Test func matchesRepliesOfConcurrentTasks() async throws {
        try await withCluster { _, client in
            await withTaskGroup(of: Void.self) { group in
                for number in 0..<3_000 {
                    group.addTask {
                        let task = Task {
                            _ = try await client.send("SET", "k\(number)", .integer(number))
                            return try await client.send("GET", "k\(number)").integer
                        }
                        if number % 3 == 0 { task.cancel() }
                        switch await task.result {
                        case .success(let reply): #expect(reply == number)
                        case .failure(let error): #expect((error as? RedisError)?.code == .cancelled)
                        }
                    }
                }
            }
        }
    }

    @Test func closingFailsPendingCommands() async throws {
        try await withCluster { cluster, client in
            _ = try await client.pipeline((0..<30).map { ["GET", "k\($0)"] })
            for node in cluster.nodes { node.process.send(SIGSTOP) }
            let one = Task { await expectFailure(.closed) { try await client.send("GET", "a") } }
            let several = Task {
                await expectFailure(.closed) { try await client.pipeline((0..<30).map { ["GET", "k\($0)"] }) }
            }
            try await Task.sleep(for: .milliseconds(200))
            await client.close()
            await one.value
            await several.value
            await expectFailure(.closed) { try await client.send("GET", "a") }
            await expectFailure(.closed) { try await client.masters() }
            for node in cluster.nodes { node.process.send(SIGCONT) }
        }
    }
}
