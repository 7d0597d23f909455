import Concurrency
import Glibc
import HalcyonImaging
import HalcyonModel
import TestSupport
import Vips

/// A render service for one test, with child processes of the built program.
struct RenderFixture: Sendable {
    let service: RenderService
    let renderer: Renderer
    let pool: ThreadPool
    let children: RenderProcessPool
    private let events = Lock<[RenderProcessPool.PoolEvent]>([])

    /// The log events of the child processes.
    var loggedEvents: [String] { events.withLock { $0.map(\.description) } }

    /// Sets up a fixture, runs `body`, and shuts the fixture down.
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
        children = RenderProcessPool(options) { [events] event in events.withLock { $0.append(event) } }
        service = RenderService(renderer: renderer, pool: pool, children: children, memory: memory)
    }

    /// Renders in a child process, whatever the codecs.
    func renderInChild(_ source: [UInt8], _ variant: Variant) async throws -> RenderedImage {
        try await service.render(source, [variant], isolation: .always).images[0]
    }

    /// Renders, and returns the failure.
    func failure(_ source: [UInt8], _ variant: Variant, isolation: RenderService.Isolation = .always) async -> JobError?
    {
        do {
            _ = try await service.render(source, [variant], isolation: isolation)
            return nil
        } catch {
            return error as? JobError ?? JobError(.poison, "not a JobError: \(error)")
        }
    }

    /// Renders in a task that is cancelled after `delay`.
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

    /// Waits for a single running child process, and returns its ID.
    func child() async throws -> Int32 {
        try await until("a child runs") { children.processes.count == 1 }
        return children.processes[0]
    }
}

/// Images to render.
enum TestImages {
    /// An image of noise, so that the file is long.
    static func noise(
        _ format: Format = .jpeg, width: Int = 320, height: Int = 240
    ) async throws -> [UInt8] {
        try await blocking {
            var state: UInt64 = 0x9e37_79b9_7f4a_7c15
            // A loop that is fast in debug builds, too.
            let pixels = [UInt8](unsafeUninitializedCapacity: width * height * 3) { bytes, count in
                while count < bytes.count {
                    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                    bytes[count] = UInt8(truncatingIfNeeded: state >> 56)
                    count += 1
                }
            }
            let options: Operation.Arguments = format == .heif ? ["compression": "av1"] : [:]
            return try Image(pixels: pixels, width: width, height: height, bands: 3).encoded(as: format, options)
        }
    }

    /// An image of one color, which is encoded and decoded quickly.
    static func plain(_ format: Format, width: Int, height: Int) async throws -> [UInt8] {
        try await blocking {
            let pixels = [UInt8](repeating: 128, count: width * height * 3)
            return try Image(pixels: pixels, width: width, height: height, bands: 3).encoded(as: format)
        }
    }
}

/// Returns a variant that fills a display of whole points at one pixel per point.
func filling(_ width: Double, _ height: Double, as format: ImageFormat, effort: Int? = nil) -> Variant {
    Variant(
        sizing: Sizing(goal: .display(Display(width: width, height: height))),
        output: OutputOptions(format: format, effort: effort))
}

/// Minutes of work in libaom, which cannot be interrupted.
let slow = filling(6000, 6000, as: .avif, effort: 9)
