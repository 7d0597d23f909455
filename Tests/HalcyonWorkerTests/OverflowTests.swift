import Concurrency
import HalcyonCluster
import HalcyonModel
import HalcyonSources
import HalcyonWorker
import Telemetry
import TestSupport
import Testing

/// A flood of one tenant that is longer than the look-ahead.
@Suite(.limitedParallelism) struct OverflowTests {
    private static let flood = 240

    private static func job(_ id: String, _ source: String, of tenant: String) -> String {
        #"{"id":"\#(id)","source":"\#(source)","width":8,"height":8,"tenant":"\#(tenant)"}"#
    }

    @Test func jobsBehindAFloodAreFound() async throws {
        try await Self.findJobsBehindAFlood(on: .mock, Topics())
    }

    @Test(.sharedApacheKafka, .enabled(if: ApacheKafka.isAvailable), arguments: [false, true])
    func jobsBehindAFloodAreFoundOnApacheKafka(exactlyOnce: Bool) async throws {
        let topics = Topics(prefix: SharedApacheKafka.uniquePrefix())
        try await Self.findJobsBehindAFlood(on: .apache, topics, exactlyOnce: exactlyOnce)
    }

    private static func findJobsBehindAFlood(
        on broker: TestBroker.Kind, _ topics: Topics, exactlyOnce: Bool = false
    ) async throws {
        let (metrics, gate) = (Metrics(), AsyncEvent())
        defer { gate.signal() }
        // Most of the flood waits for the job behind it.
        let provider = SlowProvider(try SampleImages.bytes(), takes: .milliseconds(20), free: 10, gate: gate)
        try await WorkerFixture.with(broker: broker, partitions: 1, topics: topics) { cluster in
            let providers = try CustomProviders([provider])
            // Before the worker starts, which would otherwise keep up with a slow producer.
            for number in 0..<Self.flood {
                try await cluster.submit(Self.job("big\(number)", "slow:\(number)", of: "big"))
            }
            try await cluster.submit(Self.job("small", "initials:S", of: "small"))
            try await cluster.withWorker(metrics: metrics) {
                $0.providers = providers
                $0.transactions = exactlyOnce ? TransactionOptions() : nil
                ($0.consumer.window, $0.consumer.lookahead, $0.consumer.reserve) = (4, 40, 2)
            } _: {
                #expect(try await cluster.events.terminal(of: "small").kind == "ready")
                // The flood was in one partition before it.
                let endedBefore = try #require(cluster.events.terminal.firstIndex { $0.jobID == "small" })
                #expect(endedBefore <= 10)
                gate.signal()
                try await until("jobs have been moved") { metrics.value(of: "halcyon_overflow_total") > 0 }
                try await until("all jobs have ended", within: .seconds(300)) {
                    Set(cluster.events.terminal.map(\.jobID)).count == Self.flood + 1
                }
                #expect(cluster.events.terminal.count == Self.flood + 1)
                #expect(cluster.events.terminal.allSatisfy { $0.kind == "ready" })
                // Jobs without an id are named after their first record, so that all have their own event.
                let ids = Set(cluster.events.terminal.compactMap { $0.json["id"] as? String })
                #expect(ids.count == Self.flood + 1)
            }
        }
    }
}
