import CLinux
import Concurrency
import HalcyonModel
import Vips

/// Renders images on a thread pool, and stops renderings that exceed their deadline.
///
/// A thread cannot be stopped from outside, and some codecs do not check for cancellation until they are done. Images
/// that need such a codec are rendered in a child process, which can be killed (``RenderProcessPool``). A thread of the
/// pool then waits for the child process, so the number of concurrent renderings never exceeds the number of threads.
public struct RenderService: Sendable {
    /// The isolation of a rendering.
    public enum Isolation: Hashable, Sendable {
        /// In this process if all its codecs can be interrupted, otherwise in a child process.
        case whereNeeded
        /// Always in a child process, so that a crash does not affect this process.
        case always
        /// In a child process, because a worker has crashed or hung while rendering the image. If this number of child
        /// processes crash or hang as well, the image is poison.
        case trial(children: Int)
    }

    /// The time for which a rendering in this process may ignore cancellation. If it is longer, the image is rendered
    /// in a child process, which costs a few milliseconds.
    static let uninterruptibleLimit = Duration.milliseconds(100)
    /// The maximum memory of a rendering in this process, in bytes. If more is needed, the image is rendered in a child
    /// process, whose memory is limited by the system and freed when it exits.
    static let memoryHere = 64 << 20

    private let renderer: Renderer
    private let pool: ThreadPool
    private let children: RenderProcessPool?
    private let detector: DetectorPool?
    private let timers = TimerThread(name: "render-limits")
    private let inFlight = ActiveRenders()
    private let memory: MemoryBudget
    private let freeMemory: FreeMemory

    /// - Parameters:
    ///   - pool: A pool created by ``Renderer/makePool(threads:)``. The caller shuts it down.
    ///   - children: The child processes. If it is nil, everything is rendered in this process, and renderings that
    ///     cannot be interrupted are waited for.
    ///   - memory: The memory that all renderings in flight may use together, in this process and in child processes,
    ///     as estimated by ``RenderPlan/memory``, in bytes. A rendering that needs more runs alone.
    ///   - detector: The detector; nil if there is none.
    public init(
        renderer: Renderer, pool: ThreadPool, children: RenderProcessPool?, memory: Int = .max,
        detector: DetectorPool? = nil
    ) {
        self.renderer = renderer
        self.pool = pool
        self.children = children
        self.detector = detector
        self.memory = MemoryBudget(limit: memory)
        freeMemory = FreeMemory(timers, inFlight)
    }

    /// Renders each variant of a source.
    ///
    /// The deadline (``ImageLimits/renderTime``) is measured from the moment when a thread is available, and restarts
    /// after a wait for memory. When it passes or the task is cancelled, the rendering stops within milliseconds, even
    /// inside a codec, and this method throws. A rendering that still waits for a thread is released at once.
    ///
    /// - Parameters:
    ///   - assets: The bytes of ``Variant/assets``.
    ///   - original: The original, if the source is an archive copy of it. Variants refer to the original.
    /// - Throws: ``JobError`` of code `timeout` if the deadline passed, or `poison` if a trial confirmed it;
    ///   `CancellationError`; ``ThreadPoolClosed``.
    public func render(
        _ source: [UInt8], _ variants: [Variant], assets: [Source: [UInt8]] = [:],
        isolation: Isolation = .whereNeeded, original: ArchivedOriginal? = nil
    ) async throws -> RenderResult {
        try await render(
            RenderTask.Input(
                source: source, variants: variants, assets: assets, isolation: isolation, original: original))
    }

    /// Runs `body` on a thread of the pool.
    func onThread<Result: Sendable>(_ body: @escaping @Sendable (Renderer) -> Result) async throws -> Result {
        try await pool.run { [renderer] in body(renderer) }
    }

    /// Renders variants, or makes an archive copy.
    func render(_ order: RenderTask.Input) async throws -> RenderResult {
        do {
            guard children != nil, case .trial(let most) = order.isolation else { return try await take(order) }
            return try await put(order, onTrialWith: most)
        } catch let stop as RenderTask.CancellationReason {
            throw error(of: stop)
        }
    }

    /// The earliest deadline of the renderings in flight. Nil if there are none. A rendering that continues long after
    /// its deadline cannot be interrupted and blocks its thread.
    public var firstLimit: ContinuousClock.Instant? { inFlight.firstLimit }

    /// The memory reserved by the renderings in flight, in bytes, and the number of renderings that wait for memory.
    public var memoryUse: (taken: Int, waiting: Int) { memory.use }

    /// Stops all renderings in flight, for the shutdown of the process. Each ends as cancelled.
    public func cancelAll() { inFlight.cancelAll() }

    private func put(_ order: RenderTask.Input, onTrialWith most: Int) async throws -> RenderResult {
        var fates: [String] = []
        while true {
            do {
                return try await take(order)
            } catch let death as RenderProcessCrash {
                fates.append("crashed (\(death.exit))")
            } catch RenderTask.CancellationReason.overtime {
                fates.append("took longer than \(renderer.limits.renderTime)")
            }
            guard fates.count < most else {
                let tried = fates.map { "a child \($0)" }.joined(separator: ", ")
                throw JobError(
                    .poison, "a worker crashed or hung while rendering this image, and \(tried)",
                    variant: order.variants.count == 1 ? 0 : nil)
            }
        }
    }

    /// Waits for a thread and for the result of the rendering.
    /// - Throws: ``RenderTask/CancellationReason``, ``RenderProcessCrash`` for a trial, and the errors of
    ///   ``render(_:_:assets:isolation:)``.
    private func take(_ order: RenderTask.Input) async throws -> RenderResult {
        let task = RenderTask(order)
        return try await withCancellableThrowingContinuation { waiter in
            guard task.wait(waiter) else { return }
            if !pool.perform({ run(task) }) { task.begin()?.waiter.resume(throwing: ThreadPoolClosed()) }
        } onCancel: {
            task.stop(.cancelled)
        }
    }

    /// Runs a task on a thread of the pool.
    private func run(_ task: RenderTask) {
        guard let (order, waiter) = task.begin() else { return }
        let clock = RenderDeadline(task, renderer.limits.renderTime, timers, inFlight)
        clock.start()
        let result = Result {
            try render(
                order,
                MemoryReservation(
                    memory: memory, task: task, clock: clock,
                    makeRoom: {
                        children?.endIdle()
                        detector?.endIdle()
                    }))
        }
        clock.end()
        freeMemory.renderingEnded()
        waiter.resume(with: result)
    }

    private func render(_ order: RenderTask.Input, _ reservation: MemoryReservation) throws -> RenderResult {
        try renderDetected(try detecting(order, reservation), reservation)
    }

    /// Returns the input with what the detector has found: the faces, and points instead of detections as gravity.
    ///
    /// If the detector is missing or fails, gravities have their fallback. Variants that hide or report faces fail.
    private func detecting(
        _ order: RenderTask.Input, _ reservation: MemoryReservation
    ) throws -> RenderTask.Input {
        var order = order
        for page in Set(order.variants.filter { !$0.detections.isEmpty }.map(\.page)).sorted() {
            try detect(on: page, for: &order, reservation)
        }
        return order
    }

    /// Detects what the variants of a page need.
    private func detect(
        on page: Int, for order: inout RenderTask.Input, _ reservation: MemoryReservation
    ) throws {
        let places = order.variants.indices.filter { order.variants[$0].page == page }
        let kinds = Set(places.flatMap { order.variants[$0].detections })
        let needy = places.first { order.variants[$0].requiresFaces }
        var found: [DetectionKind: [DetectedBox]] = [:]
        // Without a detector nothing is found, and the size is not used.
        var size = PixelSize(width: 1, height: 1)
        if let detector {
            let picture: DetectorPicture
            (picture, size) = try self.picture(of: order, page, detector, reservation)
            for kind in DetectionKind.allCases where kinds.contains(kind) {
                do {
                    found[kind] = try detector.find(kind, in: picture, reservation)
                } catch let failure as DetectorFailure {
                    detector.report(failure)
                    if kind == .faces, let needy { throw failure.error.forVariant(needy) }
                }
            }
        }
        if let needy, found[.faces] == nil {
            let reason = detector == nil ? "no detector is configured; set images.detector" : "the detector finds none"
            throw JobError(.internal, "faces cannot be detected: \(reason)", isRetryable: false).forVariant(needy)
        }
        order.faces[page] = found[.faces]
        for index in places {
            let variant = order.variants[index]
            guard case .detected(let wanted) = variant.sizing.gravity else { continue }
            do throws(JobError) {
                let input = try renderer.extensions.size(of: size, after: variant.before)
                order.variants[index].sizing = try variant.sizing.resolved(found[wanted.kind] ?? [], of: input)
            } catch {
                throw error.forVariant(index)
            }
        }
    }

    /// Returns the picture of a page for the detector, and the size of the upright source.
    private func picture(
        of order: RenderTask.Input, _ page: Int, _ detector: DetectorPool, _ reservation: MemoryReservation
    ) throws -> (DetectorPicture, PixelSize) {
        let side = Double(detector.options.longestSide)
        var variant = Variant(
            sizing: Sizing(
                goal: .display(
                    Display(width: side, height: side, contentMode: .scaleAspectFit, scaleOptions: .fitCropsExcess)),
                upscale: false),
            tolerance: order.variants.first { $0.page == page && !$0.detections.isEmpty }?.tolerance,
            output: OutputOptions(format: .jpeg, frames: 1), page: page)
        variant.isDetectorInput = true
        var input = order
        (input.variants, input.assets) = ([variant], [:])
        let result = try renderDetected(input, reservation)
        return (DetectorPicture(size: result.images[0].size, samples: result.images[0].body), result.sourceSize)
    }

    private func renderDetected(_ order: RenderTask.Input, _ reservation: MemoryReservation) throws -> RenderResult {
        func renderInChild(_ children: RenderProcessPool, taking memory: Int? = nil) throws -> RenderResult {
            try children.render(order, taking: memory, within: renderer.limits, reservation)
        }
        // The header is not parsed in this process either.
        if let children, order.isolation != .whereNeeded { return try renderInChild(children) }
        let file = try renderer.identify(order.source)
        if let children, Codecs.isApart(file.format) { return try renderInChild(children) }
        let isApart = children != nil && Codecs.areApart(order, of: file.format)
        // The headers of assets that require an isolated codec are not parsed in this process either. The child process
        // asks for the memory that assets need.
        let plan = try renderer.plan(
            file, order.variants, assets: isApart ? [:] : order.assets, original: order.original,
            archive: order.archive)
        if let children,
            isApart || plan.unstoppable > Self.uninterruptibleLimit || plan.isAnimated || plan.memory > Self.memoryHere
        {
            return try renderInChild(children, taking: plan.memory)
        }
        let share = try reservation.task.run(stoppedBy: memory.wake) { try reservation.enter(plan.memory) }
        defer { withExtendedLifetime(share) {} }
        let cancellation = Cancellation()
        return try reservation.task.run(stoppedBy: cancellation.cancel) {
            try renderer.render(plan, assets: order.assets, faces: order.faces, cancellation)
        }
    }

    private func error(of stop: RenderTask.CancellationReason) -> any Error {
        switch stop {
        case .cancelled: CancellationError()
        case .overtime:
            // A retry would take as long.
            JobError(
                .timeout, "rendering takes longer than \(renderer.limits.renderTime); increase images.renderTimeout",
                isRetryable: false)
        }
    }
}

/// Returns free memory to the system when no rendering is in flight and none has ended for a while. tcmalloc keeps it
/// for the next rendering, which is faster.
private final class FreeMemory: Sendable {
    private static let delay = Duration.seconds(5)

    private let timers: TimerThread
    private let inFlight: ActiveRenders
    /// The end of the last rendering; nil if all free memory has been returned since.
    private let lastEnd = Lock<ContinuousClock.Instant?>(nil)

    init(_ timers: TimerThread, _ inFlight: ActiveRenders) {
        self.timers = timers
        self.inFlight = inFlight
    }

    func renderingEnded() {
        let isFirst = lastEnd.withLock { last in
            defer { last = .now }
            return last == nil
        }
        if isFirst { look(at: .now + Self.delay) }
    }

    private func look(at moment: ContinuousClock.Instant) {
        _ = timers.set(at: moment) { [weak self] in
            guard let self else { return }
            let isBusy = inFlight.firstLimit != nil
            let next: ContinuousClock.Instant? = lastEnd.withLock { last in
                if let end = isBusy ? .now : last, end + Self.delay > .now { return end + Self.delay }
                last = nil
                return nil
            }
            if let next { look(at: next) } else { clinux_release_free_memory() }
        }
    }
}
