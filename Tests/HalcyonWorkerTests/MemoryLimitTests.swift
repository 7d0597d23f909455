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

/// A worker that has little memory.
@Suite(.limitedParallelism) struct MemoryLimitTests {
    @Test func jobsWaitForMemoryAndAllEndWell() async throws {
        let origin = try SampleImages.origin()
        let metrics = Metrics()
        try await WorkerTestCluster.with { cluster in
            try await cluster.withWorker(
                metrics: metrics,
                {
                    // One picture of these at a time, and one source that waits.
                    ($0.memoryLimit, $0.concurrency) = (4 << 20, 4)
                }
            ) {
                for number in 0..<40 {
                    try await cluster.submit(
                        #"{"id":"\#(number)","source":"\#(origin.url("/\(number)"))","width":300,"height":200,"format":"png"}"#
                    )
                }
                for number in 0..<40 { #expect(try await cluster.events.terminal(of: "\(number)").kind == "ready") }
                #expect(metrics.value(of: "halcyon_render_memory_bytes") == 0)
                #expect(metrics.value(of: "halcyon_render_memory_waiting") == 0)
            }
        }
        try await origin.stop()
    }

    @Test func whatWouldNeverHaveRoomIsRefused() async throws {
        let origin = try SampleImages.origin()
        try await WorkerTestCluster.with { cluster in
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

    /// Pictures whose encoder takes several times what their pixels do, and an animation.
    @Test(.enabled(if: !clinux_has_sanitizer(), "its shadow is larger than any limit"))
    func `a worker and its children keep to the limit together`() async throws {
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
        try await WorkerTestCluster.with { cluster in
            let worker = try await WorkerProcess.start(
                brokers: cluster.broker.bootstrapServers, redisPort: cluster.redis.port,
                [
                    "HALCYON_WORKER_MEMORY_LIMIT": "\(limit)", "HALCYON_WORKER_CONCURRENCY": "6",
                    "HALCYON_IMAGES_RENDER_TIMEOUT": "600s", "HALCYON_SOURCES_TIMEOUT": "600s",
                ])
            let watch = Task {
                var most = 0
                while !Task.isCancelled {
                    most = max(most, await blocking { memory(of: worker.pid) })
                    try? await Task.sleep(for: .milliseconds(20))
                }
                return most
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
            watch.cancel()
            let most = await watch.value
            #expect(most > 100 << 20 && most <= limit / 10 * 11, "\(most >> 20) MiB")
            worker.send(SIGTERM)
            #expect(await worker.exit() == .code(0))
        }
        try await origin.stop()
    }
}

/// Bytes that a worker and its children hold together; what they share with files counts once.
private func memory(of worker: Int32) -> Int {
    residentBytes(of: worker) + renderChildren(of: worker).reduce(0) { $0 + privateBytes(of: $1) }
}

/// A child that has not begun its program yet still shares its parent's memory, and is left out.
private func renderChildren(of worker: Int32) -> [Int32] {
    func text(_ path: String) -> String { (try? String(contentsOfFile: path, encoding: .utf8)) ?? "" }
    let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
    return names.compactMap { Int32($0) }.filter {
        text("/proc/\($0)/status").contains("\nPPid:\t\(worker)\n")
            && text("/proc/\($0)/cmdline").contains("render-child")
    }
}
