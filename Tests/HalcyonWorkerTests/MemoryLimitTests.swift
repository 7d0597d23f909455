import HalcyonWorker
import Telemetry
import TestSupport
import Testing

/// A worker that has little memory.
@Suite(.takesTurns) struct MemoryLimitTests {
    @Test func jobsWaitForMemoryAndAllEndWell() async throws {
        let origin = try Photograph.origin()
        let metrics = Metrics()
        try await Stage.with { stage in
            try await stage.withWorker(
                metrics: metrics,
                {
                    // One picture of these at a time, and one source that waits.
                    ($0.memoryLimit, $0.concurrency) = (4 << 20, 4)
                }
            ) {
                for number in 0..<40 {
                    try await stage.submit(
                        #"{"id":"\#(number)","source":"\#(origin.url("/\(number)"))","width":300,"height":200,"format":"png"}"#
                    )
                }
                for number in 0..<40 { #expect(try await stage.events.terminal(of: "\(number)").kind == "ready") }
                #expect(metrics.value(of: "halcyon_render_memory_bytes") == 0)
                #expect(metrics.value(of: "halcyon_render_memory_waiting") == 0)
            }
        }
        try await origin.stop()
    }

    @Test func whatWouldNeverHaveRoomIsRefused() async throws {
        let origin = try Photograph.origin()
        try await Stage.with { stage in
            try await stage.withWorker({ $0.memoryLimit = 1 << 20 }) {
                try await stage.submit(
                    #"{"id":"large","source":"\#(origin.url("/a"))","width":3000,"height":2000,"format":"png"}"#)
                let failed = try await stage.events.terminal(of: "large")
                #expect(failed.code == "too_many_pixels")
                #expect(failed.message.contains("MiB are allowed"))
                try await stage.submit(
                    #"{"id":"small","source":"\#(origin.url("/a"))","width":30,"height":20,"format":"png"}"#)
                #expect(try await stage.events.terminal(of: "small").kind == "ready")
            }
        }
        try await origin.stop()
    }
}
