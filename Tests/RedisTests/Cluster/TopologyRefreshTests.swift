import Testing

@testable import Redis

/// The nodes that are asked for the map, and the reported health of the cluster.
@Suite struct TopologyRefreshTests {
    private let nodes = (1...3).map { RedisAddress.tcp(host: "h", port: $0) }
    private let error = RedisError(.unavailable, "refused")

    @Test func asksNodesInOrderAndEachOnce() {
        var refresh = TopologyRefresh()
        let first = refresh.begin([nodes[0], nodes[1], nodes[0]])
        let inOneFlight = refresh.begin(nodes)
        let notAsked = refresh.failed(nodes[2])
        let second = refresh.failed(nodes[0])
        let none = refresh.failed(nodes[1])
        #expect([first, inOneFlight, notAsked, second, none] == [nodes[0], nil, nil, nodes[1], nil])
        let again = refresh.begin(nodes)
        #expect(again == nodes[0])
        refresh.answered()
        #expect(refresh.asked == nil)
        let late = refresh.failed(nodes[0])
        #expect(late == nil)
    }

    @Test func clusterIsLostWhenAllPrimariesAre() {
        var health = ClusterHealth()
        var changes: [RedisState?] = [health.removeChange()]
        health.note(error, at: nodes[0])
        changes.append(health.removeChange())  // only this node has been asked for the map
        health.recordMissingMap(error)
        changes.append(health.removeChange())
        health.forget(nodes[0])
        health.recordMap(of: nodes)
        changes.append(health.removeChange())
        health.note(error, at: nodes[0])
        changes.append(health.removeChange())
        health.note(error, at: nodes[1])
        changes.append(health.removeChange())
        health.note(error, at: nodes[2])
        changes.append(health.removeChange())
        health.forget(nodes[2])
        changes.append(health.removeChange())
        health.recordMap(of: [nodes[2]])  // the others were replaced
        changes.append(health.removeChange())
        #expect(
            changes == [
                nil, nil, .lost(error), .connected, .impaired(error), nil, .lost(error), .impaired(error), .connected,
            ])
        #expect(!health.isImpaired)
    }
}
