import Foundation
import HalcyonModel
import TestSupport
import Testing

/// Jobs received in one poll, some of which hit the cache.
@Suite(.limitedParallelism) struct JobBatchTests {
    /// Returns a job. Every fifth is of a kind that does not end together with the cache hits.
    private func message(_ number: Int) -> String {
        let hit = #""source":"initials:AB","width":40,"height":40"#
        switch number % 25 {
        case 0: return #"{"id":"invalid-\#(number)","width":4}"#
        case 5: return #"{"id":"miss-\#(number)","source":"initials:CD","width":\#(number),"height":8}"#
        case 10: return #"{"id":"longer-\#(number)",\#(hit),"maxAge":3000000}"#
        case 15: return #"{"id":"tagged-\#(number)",\#(hit),"tags":["a"]}"#
        case 20: return #"{"id":"cancelled-\#(number)",\#(hit)}"#
        default: return #"{"id":"hit-\#(number)",\#(hit)}"#
        }
    }

    @Test func batchedJobsEndAsIfProcessedAlone() async throws {
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker {
                try await cluster.submit(#"{"id":"first","source":"initials:AB","width":40,"height":40}"#)
                #expect(try await cluster.events.terminal(of: "first").kind == "ready")
            }
            // They wait in the topic until the next worker receives them together.
            for number in 1...100 { try await cluster.submit(message(number)) }
            for number in [20, 45, 70, 95] { try await cluster.publish(.cancel(.job("cancelled-\(number)"))) }
            try await cluster.withWorker {
                func terminalEvents(_ prefix: String, _ count: Int) async throws -> [EventLog.Entry] {
                    try await until("all \(prefix) jobs have ended") {
                        cluster.events.terminal.count { $0.jobID.hasPrefix(prefix) } >= count
                    }
                    return cluster.events.terminal.filter { $0.jobID.hasPrefix(prefix) }
                }
                let hits = try await terminalEvents("hit", 80)
                #expect(hits.allSatisfy { $0.kind == "ready" && $0.data["origin"] as? String == "memory" })
                #expect(Set(hits.map(\.jobID)).count == 80 && hits.count == 80)
                #expect(try await terminalEvents("miss", 4).allSatisfy { $0.kind == "ready" })
                #expect(try await terminalEvents("longer", 4).allSatisfy { $0.kind == "ready" })
                #expect(try await terminalEvents("tagged", 4).allSatisfy { $0.kind == "ready" })
                #expect(try await terminalEvents("cancelled", 4).allSatisfy { $0.kind == "cancelled" })
                #expect(try await terminalEvents("invalid", 4).allSatisfy { $0.code == "invalid_job" })
            }
            // All offsets are committed: another worker has nothing to do.
            let ended = cluster.events.terminal.count
            try await cluster.withWorker {
                try await cluster.submit(#"{"id":"last","source":"initials:AB","width":40,"height":40}"#)
                #expect(try await cluster.events.terminal(of: "last").kind == "ready")
                #expect(cluster.events.terminal.count == ended + 1)
            }
        }
    }
}
