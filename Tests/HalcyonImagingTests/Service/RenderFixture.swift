import Concurrency
import Glibc
import HalcyonImaging
import HalcyonModel
import TestSupport
import Vips

/// A service with children of the built program, for one test.
struct RenderFixture: Sendable {
    let service: RenderService
    let renderer: Renderer
    let pool: ThreadPool
    let children: RenderProcessPool
    private let heard = Lock<[RenderProcessPool.PoolEvent]>([])

    /// What the children gave for the log.
    var notes: [String] { heard.withLock { $0.map(\.description) } }

    /// Runs `body` in a studio of its own and takes it down.
    static func with(
        threads: Int = 1, limits: ImageLimits = ImageLimits(renderTime: .seconds(600)), memory: Int = .max,
        program: String = HalcyonExecutable.path,
        arguments: [String]? = nil, _ change: (inout RenderProcessOptions) -> Void = { _ in },
        _ body: (RenderFixture) async throws -> Void
    ) async throws {
        var options = RenderProcessOptions(program: program)
        if let arguments { options.arguments = arguments }
        change(&options)
        let fixture = RenderFixture(threads, limits, memory, options)
        let result: Result<Void, any Error>
        do { result = .success(try await body(fixture)) } catch { result = .failure(error) }
        await blocking {
            fixture.pool.shutdown()
            fixture.children.shutdown()
        }
        try result.get()
    }

    private init(_ threads: Int, _ limits: ImageLimits, _ memory: Int, _ options: RenderProcessOptions) {
        renderer = Renderer(limits: limits)
        pool = Renderer.makePool(threads: threads)
        children = RenderProcessPool(options) { [heard] note in heard.withLock { $0.append(note) } }
        service = RenderService(renderer: renderer, pool: pool, children: children, memory: memory)
    }

    /// What the child does with a picture, whatever its codecs.
    func renderInChild(_ source: [UInt8], _ variant: Variant) async throws -> RenderedImage {
        try await service.render(source, [variant], isolation: .always).images[0]
    }

    /// The failure that rendering ends in.
    func failure(_ source: [UInt8], _ variant: Variant, isolation: RenderService.Isolation = .always) async -> JobError?
    {
        do {
            _ = try await service.render(source, [variant], isolation: isolation)
            return nil
        } catch {
            return error as? JobError ?? JobError(.poison, "not a Failure: \(error)")
        }
    }

    /// Renders in a task that is cancelled after a while.
    func rendering(
        _ source: [UInt8], _ variants: [Variant], cancelledAfter delay: Duration,
        isolation: RenderService.Isolation = .whereNeeded
    ) async throws -> RenderResult {
        let task = Task {
            if delay == .zero { while !Task.isCancelled { await Task.yield() } }
            return try await service.render(source, variants, isolation: isolation)
        }
        let timer = Task {
            try await Task.sleep(for: delay)
            task.cancel()
        }
        defer { timer.cancel() }
        return try await task.value
    }

    /// The one child that runs.
    func child() async throws -> Int32 {
        try await until("a child runs") { children.processes.count == 1 }
        return children.processes[0]
    }
}

/// Pictures to render.
enum Pictures {
    /// Noise, so that files are long.
    static func noise(
        _ format: Format = .jpeg, width: Int = 320, height: Int = 240
    ) async throws -> [UInt8] {
        try await blocking {
            var state: UInt64 = 0x9e37_79b9_7f4a_7c15
            let pixels = (0..<width * height * 3).map { _ in
                state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                return UInt8(truncatingIfNeeded: state >> 56)
            }
            let options: Operation.Arguments = format == .heif ? ["compression": "av1"] : [:]
            return try Image(pixels: pixels, width: width, height: height, bands: 3).encoded(as: format, options)
        }
    }
}

/// Fills a display of whole points at one pixel a point.
func filling(_ width: Double, _ height: Double, as format: ImageFormat, effort: Int? = nil) -> Variant {
    Variant(
        sizing: Sizing(goal: .display(Display(width: width, height: height))),
        output: OutputOptions(format: format, effort: effort))
}

/// Minutes of work inside libaom, which does not look up before it is done.
let slow = filling(6000, 6000, as: .avif, effort: 9)
