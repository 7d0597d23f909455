import HalcyonImaging
import TestSupport
import Testing

@Suite(.limitedParallelism) struct DeadlineTests {
    @Test func `a deadline in the middle of an encoder that does not listen ends the job as expired`() async throws {
        let origin = try SampleImages.origin([])
        try await WorkerTestCluster.with { cluster in
            try await cluster.withWorker {
                $0.renderChildren = RenderProcessOptions(program: HalcyonExecutable.path)
                $0.concurrency = 1
            } _: {
                // Minutes of libaom, but for the deadline.
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

    @Test func `what takes longer than a rendering may ends as a timeout`() async throws {
        let origin = try SampleImages.origin([])
        try await WorkerTestCluster.with { cluster in
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
