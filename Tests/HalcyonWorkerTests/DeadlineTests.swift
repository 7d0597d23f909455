import HalcyonImaging
import TestSupport
import Testing

@Suite(.limitedParallelism) struct DeadlineTests {
    @Test func deadlineInterruptsARunningEncoder() async throws {
        let origin = try SampleImages.origin([])
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker {
                $0.renderChildren = RenderProcessOptions(program: HalcyonExecutable.path)
                $0.concurrency = 1
            } _: {
                // libaom would take minutes without the deadline.
                try await cluster.submit(
                    """
                    {"id":"slow","source":"\(origin.url("/a"))","width":6000,"height":6000,"format":"avif","effort":9,\
                    "deadline":3}
                    """)
                let event = try await cluster.events.terminal(of: "slow")
                #expect(event.kind == "failed" && event.code == "expired")
                // The only thread is free again.
                try await cluster.submit(
                    #"{"id":"next","source":"\#(origin.url("/a"))","width":60,"height":60,"format":"avif"}"#)
                #expect(try await cluster.events.terminal(of: "next").kind == "ready")
            }
        }
        try await origin.stop()
    }

    @Test func renderTimeLimitFailsWithTimeout() async throws {
        let origin = try SampleImages.origin([])
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker {
                $0.renderChildren = RenderProcessOptions(program: HalcyonExecutable.path)
                $0.images.renderTime = .milliseconds(500)
            } _: {
                for format in ["avif", "png"] {
                    try await cluster.submit(
                        """
                        {"id":"\(format)","source":"\(origin.url("/a"))","width":8000,"height":8000,\
                        "format":"\(format)","effort":9}
                        """)
                    let event = try await cluster.events.terminal(of: format)
                    #expect(event.kind == "failed" && event.code == "timeout", "\(event.message)")
                }
            }
        }
        try await origin.stop()
    }
}
