import CLinux
import Concurrency
import Foundation
import Glibc
import HalcyonImaging
import HalcyonModel
import HalcyonWorker
import Subprocess
import Telemetry
import TestSupport
import Testing

/// Workers with a low memory limit.
@Suite(.limitedParallelism) struct MemoryLimitTests {
    @Test(.extended) func jobsWaitForMemoryAndAllSucceed() async throws {
        let origin = try SampleImages.origin()
        let metrics = Metrics()
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker(
                metrics: metrics,
                {
                    // Enough for one of these images at a time, and one source that waits.
                    ($0.memoryLimit, $0.concurrency) = (4 << 20, 4)
                }
            ) {
                for number in 0..<40 {
                    try await cluster.submit(
                        #"{"id":"\#(number)","source":"\#(origin.url("/\(number)"))","width":300,"height":200,"format":"png"}"#
                    )
                }
                for number in 0..<40 { #expect(try await cluster.events.terminal(of: "\(number)").kind == "ready") }
                try await until("no memory is used") {
                    metrics.value(of: "halcyon_render_memory_bytes") == 0
                        && metrics.value(of: "halcyon_render_memory_waiting") == 0
                }
            }
        }
        try await origin.stop()
    }

    @Test func rejectsJobLargerThanTheMemoryLimit() async throws {
        let origin = try SampleImages.origin()
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker({ $0.memoryLimit = 1 << 20 }) {
                try await cluster.submit(
                    #"{"id":"large","source":"\#(origin.url("/a"))","width":3000,"height":2000,"format":"png"}"#)
                let failed = try await cluster.events.terminal(of: "large")
                #expect(failed.code == "too_many_pixels")
                #expect(failed.message.contains("MiB are allowed"))
                try await cluster.submit(
                    #"{"id":"small","source":"\#(origin.url("/a"))","width":30,"height":20,"format":"png"}"#)
                #expect(try await cluster.events.terminal(of: "small").kind == "ready")
            }
        }
        try await origin.stop()
    }

    /// Images whose encoder needs several times the memory of their pixels, and an animation.
    @Test(.extended, .enabled(if: !clinux_has_sanitizer(), "the shadow memory of the sanitizer exceeds any limit"))
    func workerAndRenderProcessesStayWithinTheLimit() async throws {
        let limit = 512 << 20
        let photograph = try SampleImages.bytes()
        let frame = try await blocking {
            let small = Variant(
                sizing: Sizing(goal: .display(Display(width: 200, height: 150))), output: OutputOptions(format: .gif))
            return try Renderer().render(photograph, [small]).images[0].body
        }
        let animation = AnimatedGIF.repeating(frame, frames: 300)
        let origin = RawOrigin { request in
            RawOrigin.Step.response(request.path.hasSuffix("gif") ? animation : photograph)
        }
        try await WorkerFixture.with { cluster in
            let worker = try await WorkerProcess.start(
                brokers: cluster.broker.bootstrapServers, redisPort: cluster.redis.port,
                [
                    "HALCYON_WORKER_MEMORY_LIMIT": "\(limit)", "HALCYON_WORKER_CONCURRENCY": "6",
                    "HALCYON_IMAGES_RENDER_TIMEOUT": "600s", "HALCYON_SOURCES_TIMEOUT": "600s",
                ])
            let sampling = Task {
                var peak = 0
                while !Task.isCancelled {
                    peak = max(peak, await blocking { memory(of: worker.pid) })
                    try? await Task.sleep(for: .milliseconds(20))
                }
                return peak
            }
            for number in 0..<20 {
                try await cluster.submit(
                    number == 10
                        ? #"{"id":"10","source":"\#(origin.url("/gif"))","width":100,"height":75,"format":"webp"}"#
                        : """
                        {"id":"\(number)","source":"\(origin.url("/a"))","width":3000,"height":\(2000 + number),"format":"avif",\
                        "effort":0}
                        """)
            }
            for number in 0..<20 {
                let event = try await cluster.events.terminal(of: "\(number)", within: .seconds(600))
                #expect(event.kind == "ready", "\(event.message)")
            }
            sampling.cancel()
            let peak = await sampling.value
            #expect(peak > 100 << 20 && peak <= limit / 10 * 11, "\(peak >> 20) MiB")
            worker.send(SIGTERM)
            #expect(await worker.exit() == .code(0))
        }
        try await origin.stop()
    }

    @Test(.extended, .enabled(if: !clinux_has_sanitizer(), "a sanitizer keeps what is freed"))
    func idleWorkerReturnsFreeMemory() async throws {
        let photograph = try SampleImages.bytes()
        // Two results share the decoded image, which is in memory.
        let source = try await blocking {
            let large = Variant(
                sizing: Sizing(goal: .display(Display(width: 3000, height: 2000))), output: OutputOptions(format: .png))
            return try Renderer().render(photograph, [large]).images[0].body
        }
        let origin = RawOrigin { _ in RawOrigin.Step.response(source) }
        try await WorkerFixture.with { cluster in
            let worker = try await WorkerProcess.start(
                brokers: cluster.broker.bootstrapServers, redisPort: cluster.redis.port)
            for number in 0..<40 {
                try await cluster.submit(
                    #"{"id":"\#(number)","source":"\#(origin.url("/\(number)"))","variants":[{"width":90},{"width":80}]}"#
                )
            }
            var peak = 0
            for number in 0..<40 {
                #expect(try await cluster.events.terminal(of: "\(number)").kind == "ready")
                peak = max(peak, await blocking { privateBytes(of: worker.pid) })
            }
            try await until("the worker has returned a third of its memory") { [peak] in
                await blocking { privateBytes(of: worker.pid) } < peak / 3 * 2
            }
            worker.send(SIGTERM)
            #expect(await worker.exit() == .code(0))
        }
        try await origin.stop()
    }
}

/// Returns the resident bytes of a worker and its render processes. Memory shared with files counts once.
private func memory(of worker: Int32) -> Int {
    residentBytes(of: worker) + renderChildren(of: worker).reduce(0) { $0 + privateBytes(of: $1) }
}

/// Returns the render processes of a worker, without those that still share its memory because they have not executed
/// their program yet.
private func renderChildren(of worker: Int32) -> [Int32] {
    func text(_ path: String) -> String { (try? String(contentsOfFile: path, encoding: .utf8)) ?? "" }
    let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
    return names.compactMap { Int32($0) }.filter {
        text("/proc/\($0)/status").contains("\nPPid:\t\(worker)\n")
            && text("/proc/\($0)/cmdline").contains("render-child")
    }
}
