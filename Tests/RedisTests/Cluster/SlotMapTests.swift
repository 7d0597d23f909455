import Testing

@testable import Redis

@Suite struct SlotMapTests {
    private let asked = RedisAddress.tcp(host: "10.0.0.9", port: 7000)

    private func range(_ first: Int, _ last: Int, _ nodes: (RedisValue, Int)...) -> RedisValue {
        .array(
            [.integer(first), .integer(last)]
                + nodes.map { .array([$0.0, .integer($0.1), .bytes(Array("id".utf8)), .array([])]) })
    }

    private func host(_ text: String) -> RedisValue { .bytes(Array(text.utf8)) }

    @Test func parsesPrimariesAndReplicas() throws {
        let map = try SlotMap(
            .array([
                range(0, 100, (host("10.0.0.1"), 7001), (host("10.0.0.2"), 7002)),
                range(101, 16_383, (host("node.example"), 7003)), range(16_000, 16_000, (host("10.0.0.1"), 7001)),
            ]), asked: asked)
        let first = RedisAddress.tcp(host: "10.0.0.1", port: 7001)
        #expect(map.masters == [first, .tcp(host: "node.example", port: 7003)])
        #expect(map.replicas == [.tcp(host: "10.0.0.2", port: 7002)])
        #expect(map.isComplete)
        for (slot, master) in [(0, 0), (100, 0), (101, 1), (15_999, 1), (16_000, 0), (16_383, 1)] {
            #expect(map.master(of: HashSlot(number: slot)!) == map.masters[master])
        }
    }

    @Test func emptyHostIsTheQueriedNode() throws {
        for empty in [RedisValue.null, host("")] {
            let map = try SlotMap(.array([range(0, 0, (empty, 7005))]), asked: asked)
            #expect(map.masters == [.tcp(host: "10.0.0.9", port: 7005)])
            #expect(!map.isComplete)
            #expect(map.master(of: HashSlot(number: 1)!) == nil)
        }
    }

    @Test func ignoresNodesWithUnknownHost() throws {
        let map = try SlotMap(.array([range(0, 5, (host("?"), 7005), (host("?"), 7006))]), asked: asked)
        #expect(map.masters.isEmpty && map.replicas.isEmpty)
    }

    @Test func recordsMovedSlots() throws {
        var map = try SlotMap(
            .array([range(0, 16_383, (host("a"), 1), (host("b"), 2))]), asked: asked)
        let slot = HashSlot(number: 77)!
        map.move(slot, to: .tcp(host: "b", port: 2))
        #expect(map.master(of: slot) == .tcp(host: "b", port: 2))
        #expect(map.master(of: HashSlot(number: 78)!) == .tcp(host: "a", port: 1))
        #expect(map.masters.count == 2 && map.replicas.isEmpty)
    }

    @Test(
        arguments: [
            .null, .status("OK"), .array([.integer(1)]), .array([.array([.integer(0), .integer(16_384), .array([])])]),
            .array([.array([.integer(5), .integer(1), .array([.null, .integer(1)])])]),
            .array([.array([.integer(0), .integer(1), .array([.null])])]),
            .array([.array([.integer(0), .integer(1), .array([.null, .integer(70_000)])])]),
        ] as [RedisValue])
    func rejectsMalformedReplies(reply: RedisValue) {
        #expect { try SlotMap(reply, asked: asked) } throws: { ($0 as? RedisError)?.code == .protocolError }
    }
}
