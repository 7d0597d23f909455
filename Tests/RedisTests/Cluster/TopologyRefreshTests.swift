import Testing

@testable import Redis

/// Who is asked for the map, and what is told of the whole.
@Suite struct TopologyRefreshTests {
    private let nodes = (1...3).map { RedisAddress.tcp(host: "h", port: $0) }
    private let error = RedisError(.unavailable, "refused")

    @Test func asksOneNodeAfterTheOtherAndEachOnce() {
        var survey = TopologyRefresh()
        let first = survey.begin([nodes[0], nodes[1], nodes[0]])
        let inOneFlight = survey.begin(nodes)
        let notAsked = survey.failed(nodes[2])
        let second = survey.failed(nodes[0])
        let none = survey.failed(nodes[1])
        #expect([first, inOneFlight, notAsked, second, none] == [nodes[0], nil, nil, nodes[1], nil])
        let again = survey.begin(nodes)
        #expect(again == nodes[0])
        survey.answered()
        #expect(survey.asked == nil)
        let late = survey.failed(nodes[0])
        #expect(late == nil)
    }

    @Test func aClusterIsAwayWhenAllItsMastersAre() {
        var health = ClusterHealth()
        var told: [RedisState?] = [health.removeChange()]
        health.note(error, at: nodes[0])
        told.append(health.removeChange())  // nobody has been asked for the map but the one
        health.recordMissingMap(error)
        told.append(health.removeChange())
        health.forget(nodes[0])
        health.recordMap(of: nodes)
        told.append(health.removeChange())
        health.note(error, at: nodes[0])
        told.append(health.removeChange())
        health.note(error, at: nodes[1])
        told.append(health.removeChange())
        health.note(error, at: nodes[2])
        told.append(health.removeChange())
        health.forget(nodes[2])
        told.append(health.removeChange())
        health.recordMap(of: [nodes[2]])  // the others were replaced
        told.append(health.removeChange())
        #expect(
            told == [
                nil, nil, .lost(error), .connected, .impaired(error), nil, .lost(error), .impaired(error), .connected,
            ])
        #expect(!health.isImpaired)
    }
}
