import Foundation
import HalcyonWorker
import Telemetry
import TestSupport
import Testing

@Suite(.takesTurns) struct DrainTests {
    @Test func finishesWhatItBeganAndLeavesTheRestToTheNextWorker() async throws {
        let photograph = try Photograph.bytes()
        let origin = RawOrigin { _ in
            [.pause(.milliseconds(300))] + RawOrigin.Step.response(photograph, ["Cache-Control: max-age=600"])
        }
        try await Stage.with { stage in
            var options = stage.options
            options.fetches = 2
            // What waits for its origin's turn has begun: only what was not taken is left.
            options.consumer.window = 4
            let first = try await Worker.start(options, log: .silent, metrics: Metrics())
            await first.ready()
            for number in 0..<30 {
                try await stage.submit(
                    #"{"id":"\#(number)","source":"\#(origin.url("/\(number)"))","width":64,"height":64}"#)
            }
            try await until("the first job ends") { !stage.events.terminal.isEmpty }
            #expect(await first.drain(grace: .seconds(10)) == 0)
            let done = Set(stage.events.terminal.map(\.jobID))
            #expect((1..<30).contains(done.count))

            try await stage.withWorker {
                try await until("all jobs end") { Set(stage.events.terminal.map(\.jobID)).count == 30 }
            }
            // What was handed back lies behind all that was finished, so nothing comes twice.
            #expect(stage.events.terminal.count == 30)
            #expect(stage.events.terminal.allSatisfy { $0.kind == "ready" })
        }
        try await origin.stop()
    }

    @Test func cutsShortWhatDoesNotEndWithinTheGrace() async throws {
        let origin = RawOrigin { _ in [.awaitEnd] }
        try await Stage.with { stage in
            let worker = try await Worker.start(stage.options, log: .silent, metrics: Metrics())
            await worker.ready()
            try await stage.submit(#"{"id":"stuck","source":"\#(origin.url("/stuck"))"}"#)
            try await until("the fetch begins") { origin.requests.count == 1 }
            #expect(await worker.drain(grace: .milliseconds(300)) == 1)
            // Had it waited for the fetch to fail, that would have been told.
            #expect(stage.events.terminal.isEmpty)
        }
        try await origin.stop()
    }
}
