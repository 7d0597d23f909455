import Testing

@testable import Redis

@Suite struct RoutingTargetTests {
    /// Commands whose keys all lie in the slot of `k`.
    private static let ofOneSlot: [[RedisArgument]] = [
        ["GET", "k"], ["get", "k"], ["DEL", "{k}1", "{k}2"], ["MSET", "{k}1", "a", "{k}2", "b"],
        ["EVALSHA", "sha", 2, "{k}1", "{k}2", "other"], ["EVAL", "return", "1", "k", "other"],
        ["ZUNIONSTORE", "{k}", "2", "{k}1", "{k}2", "WEIGHTS", 1, 2], ["SINTERCARD", 1, "k", "LIMIT", 3],
        ["OBJECT", "ENCODING", "k"], ["RENAME", "{k}1", "{k}2"], ["SPUBLISH", "k", "text"],
        ["BITOP", "AND", "{k}", "{k}1", "{k}2"],
    ]

    @Test(arguments: ofOneSlot)
    func routesCommandsByTheirKeys(command: [RedisArgument]) throws {
        #expect(try RoutingTarget(of: command) == .slot(HashSlot(of: "k")))
    }

    @Test(
        arguments: [["PING"], ["PUBLISH", "channel", "text"], ["EVAL", "return 1", 0, "k"], ["TIME"]]
            as [[RedisArgument]])
    func routesCommandsWithoutKeysToAnyNode(command: [RedisArgument]) throws {
        #expect(try RoutingTarget(of: command) == .anyNode)
    }

    @Test(
        arguments: [
            // Several slots; too few arguments; no node given; an unknown command.
            ["MGET", "a", "b"], ["EVAL", "s", 2, "a", "b"], ["MSET", "a", "1", "b", "2"],
            ["GET"], ["EVAL", "s"], ["EVAL", "s", 3, "a"], ["EVAL", "s", "x", "a"], ["EVAL", "s", -1, "a"],
            ["SCAN", 0], ["INFO"], ["SCRIPT", "LOAD", "return 1"], ["FLUSHALL"],
            ["NOSUCHCOMMAND", "a"],
        ] as [[RedisArgument]])
    func rejectsCommandsThatAClusterCannotRun(command: [RedisArgument]) {
        #expect { try RoutingTarget(of: command) } throws: { ($0 as? RedisError)?.code == .misuse }
    }

    @Test func splitsPipelineIntoCommandsAndTransactions() throws {
        let pieces = try PipelineSplitter([
            ["GET", "a"], ["MULTI"], ["INCR", "{b}1"], ["PING"], ["INCR", "{b}2"], ["EXEC"], ["PING"], ["multi"],
            ["exec"],
        ]).pieces
        #expect(pieces.map(\.range) == [0..<1, 1..<6, 6..<7, 7..<9])
        #expect(
            pieces.map(\.destination) == [
                .slot(HashSlot(of: "a")), .slot(HashSlot(of: "b")), .anyNode, .anyNode,
            ])
    }

    @Test(
        arguments: [
            [["MULTI"], ["GET", "a"], ["GET", "b"], ["EXEC"]], [["MULTI"], ["GET", "a"]], [["EXEC"]],
            [["MULTI"], ["MULTI"], ["EXEC"]], [["GET", "a"], ["MGET", "a", "b"]],
        ] as [[[RedisArgument]]])
    func rejectsPipelinesThatAClusterCannotRun(commands: [[RedisArgument]]) {
        #expect { try PipelineSplitter(commands) } throws: { ($0 as? RedisError)?.code == .misuse }
    }
}
