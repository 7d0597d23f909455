import Foundation
import HalcyonCluster
import HalcyonModel
import HalcyonWorker
import Synchronization
import TestSupport
import Testing

/// Results that are rendered again before they expire.
@Suite(.limitedParallelism) struct RefreshTests {
    /// Makes refreshes possible for results that live a few seconds.
    private static func refreshSoon(_ options: inout WorkerOptions) {
        options.refresh.minimumInterval = 0.1
        options.refresh.interval = .milliseconds(100)
        options.results.jitter = 0
    }

    private static func job(_ id: String, _ source: String, _ fields: String = "") -> String {
        #"{"id":"\#(id)","source":"\#(source)","width":60,"height":60,"maxAge":3,"refresh":"beforeExpiry"\#(fields)}"#
    }

    private static func refreshes(_ cluster: WorkerFixture) -> [EventLog.Entry] {
        cluster.events.terminal.filter { $0.jobID.hasPrefix("refresh-") }
    }

    /// The number of jobs that wait for their refresh.
    private static func waiting(_ cluster: WorkerFixture) async throws -> Int {
        try await cluster.client.send("ZCARD", "halcyon:refresh:{halcyon.}:due").integer ?? -1
    }

    @Test func resultsStayWarmWhileTheyAreAskedFor() async throws {
        let origin = try SampleImages.origin()
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker(Self.refreshSoon) {
                let fields = #","webhook":"https://hooks.example.org/","batch":"b","metadata":1,"delivery":"inline""#
                let source = origin.url("/a")
                try await cluster.submit(Self.job("0", source, fields))
                #expect(try await cluster.events.terminal(of: "0").data["origin"] as? String == "network")
                var asked = 0
                while Self.refreshes(cluster).count < 2 {
                    asked += 1
                    try await cluster.submit(Self.job("\(asked)", source))
                    // No job waits for its origin, because the results never expire.
                    #expect(try await cluster.events.terminal(of: "\(asked)").data["origin"] as? String == "memory")
                    try await Task.sleep(for: .milliseconds(300))
                }
                #expect(origin.requests.count == 3)
                for event in Self.refreshes(cluster) {
                    #expect(event.kind == "ready" && event.data["origin"] as? String == "network")
                    let job = event.data["job"] as? [String: Any] ?? [:]
                    #expect(job["batch"] == nil && job["metadata"] == nil)
                    #expect(((event.data["variants"] as? [[String: Any]])?.first?["data"]) == nil)
                }
                // Nobody asks any more. Only what was asked for before is refreshed.
                try await until("the job is forgotten") { try await Self.waiting(cluster) == 0 }
                #expect(origin.requests.count <= 4)
            }
        }
        try await origin.stop()
    }

    @Test func failedRefreshesEnd() async throws {
        let image = try SampleImages.bytes()
        let isBroken = Atomic(false)
        let origin = RawOrigin { _ in
            isBroken.load(ordering: .relaxed)
                ? RawOrigin.answer("500 Oops") : RawOrigin.Step.response(image, ["Cache-Control: max-age=600"])
        }
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker(Self.refreshSoon) {
                try await cluster.submit(Self.job("a", origin.url("/a"), #","fallback":"initials:F""#))
                #expect(try await cluster.events.terminal(of: "a").kind == "ready")
                isBroken.store(true, ordering: .relaxed)
                try await cluster.submit(Self.job("b", origin.url("/a")))
                _ = try await cluster.events.terminal(of: "b")
                try await until("the refresh has failed") { !Self.refreshes(cluster).isEmpty }
                #expect(Self.refreshes(cluster).map(\.kind) == ["failed"])
                #expect(try await Self.waiting(cluster) == 0)
            }
        }
        try await origin.stop()
    }

    @Test func purgedResultsAreNotRefreshed() async throws {
        let origin = try SampleImages.origin()
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker(Self.refreshSoon) {
                for id in ["a", "b"] {
                    try await cluster.submit(Self.job(id, origin.url("/a")))
                    _ = try await cluster.events.terminal(of: id)
                }
                #expect(try await Self.waiting(cluster) == 1)
                let source = try Source.web(WebURL(origin.url("/a")))
                _ = try await Purger(cluster.client).run(Purge(.source(source)))
                try await until("the job is forgotten") { try await Self.waiting(cluster) == 0 }
                #expect(Self.refreshes(cluster).isEmpty && origin.requests.count == 1)
            }
        }
        try await origin.stop()
    }
}
