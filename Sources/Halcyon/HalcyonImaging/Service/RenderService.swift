import HalcyonModel
import Threads
import Vips

/// Renders on a pool of threads, and stops what takes too long.
///
/// A thread cannot be stopped from outside, and some codecs do not look up before they are done: pictures that need one
/// of those are rendered in a child process, which can be killed (``RenderChildren``). A thread of the pool then waits
/// for the child: there are never more renderings at once, in here and in children together, than the pool has threads.
public struct RenderService: Sendable {
    /// Where a picture is rendered.
    public enum Isolation: Hashable, Sendable {
        /// In this process where all its codecs can be stopped, else in a child.
        case whereNeeded
        /// In a child: whatever it does there, this process lives on.
        case always
        /// In a child, because this process, or one like it, has died or hung in the middle of it. So many children
        /// may die or hang of it; then it is poison.
        case trial(children: Int)
    }

    /// How long a rendering in this process may take no notice of being stopped. What would take longer goes to a child,
    /// which costs a few milliseconds.
    static let patience = Duration.milliseconds(100)
    /// Bytes of memory that a rendering in this process may take. What takes more goes to a child, whose memory is bounded by the system
    /// and is gone when the child is.
    static let memoryHere = 64 << 20

    private let renderer: Renderer
    private let pool: ThreadPool
    private let children: RenderChildren?
    private let alarms = Alarms(name: "render-limits")
    private let underWay = TurnsUnderWay()
    private let memory: DecodingMemory

    /// - Parameters:
    ///   - pool: made by ``Renderer/makePool(threads:)``; whose it is shuts it down.
    ///   - children: without them everything is rendered in this process, and what does not listen is waited for.
    ///   - memory: bytes that all renderings under way may take together, here and in children, as ``RenderPlan/memory`` estimates
    ///     them; what takes more by itself is rendered alone.
    public init(renderer: Renderer, pool: ThreadPool, children: RenderChildren?, memory: Int = .max) {
        self.renderer = renderer
        self.pool = pool
        self.children = children
        self.memory = DecodingMemory(limit: memory)
    }

    /// Makes each variant of a source.
    ///
    /// The time limit (``ImageLimits/renderTime``) counts from the moment a thread is there, and anew when memory was
    /// waited for. When it passes or the task is cancelled, the rendering comes to a halt, within milliseconds also in the middle of a
    /// codec, and this throws. What still waits for a thread then is let go at once.
    ///
    /// - Parameter assets: the bytes of ``Variant/assets``.
    /// - Throws: ``Failure``, of code `timeout` when the time limit passed, `poison` when a trial found nothing better; `CancellationError`;
    ///   ``ThreadPoolClosed``.
    public func render(
        _ source: [UInt8], _ variants: [Variant], assets: [Source: [UInt8]] = [:],
        isolation: Isolation = .whereNeeded
    ) async throws -> Rendering {
        let order = Turn.Order(source: source, variants: variants, assets: assets, isolation: isolation)
        do {
            guard children != nil, case .trial(let most) = isolation else { return try await take(order) }
            return try await put(order, onTrialWith: most)
        } catch let stop as Turn.Stop {
            throw error(of: stop)
        }
    }

    /// When the first of the time limits of renderings under way passes; nil while nothing is rendered. What goes on long after that
    /// does not listen to being stopped, and holds its thread.
    public var firstLimit: ContinuousClock.Instant? { underWay.firstLimit }

    /// Bytes of memory that the renderings under way were given, and how many wait for theirs.
    public var memoryUse: (taken: Int, waiting: Int) { memory.use }

    /// Stops all renderings under way; each ends as cancelled. For a process that leaves.
    public func stopAll() { underWay.stopAll() }

    private func put(_ order: Turn.Order, onTrialWith most: Int) async throws -> Rendering {
        var fates: [String] = []
        while true {
            do {
                return try await take(order)
            } catch let death as ChildDeath {
                fates.append("died (\(death.exit))")
            } catch Turn.Stop.overtime {
                fates.append("took longer than \(renderer.limits.renderTime)")
            }
            guard fates.count < most else {
                let tried = fates.map { "a child \($0)" }.joined(separator: ", ")
                throw Failure(
                    .poison, "a worker did not survive this picture, and \(tried)",
                    variant: order.variants.count == 1 ? 0 : nil)
            }
        }
    }

    /// Waits for a thread, and for what is made there.
    /// - Throws: ``Turn/Stop``, and of a trial ``ChildDeath``, besides what ``render(_:_:assets:isolation:)`` throws.
    private func take(_ order: Turn.Order) async throws -> Rendering {
        let turn = Turn(order)
        return try await withCancellableThrowingContinuation { waiter in
            guard turn.wait(waiter) else { return }
            if !pool.perform({ run(turn) }) { turn.begin()?.waiter.resume(throwing: ThreadPoolClosed()) }
        } onCancel: {
            turn.stop(.cancelled)
        }
    }

    /// On a thread of the pool.
    private func run(_ turn: Turn) {
        guard let (order, waiter) = turn.begin() else { return }
        let clock = TurnClock(turn, renderer.limits.renderTime, alarms, underWay)
        clock.start()
        let result = Result {
            try render(order, MemoryDoor(memory: memory, turn: turn, clock: clock, makeRoom: { children?.endIdle() }))
        }
        clock.end()
        waiter.resume(with: result)
    }

    private func render(_ order: Turn.Order, _ door: MemoryDoor) throws -> Rendering {
        func renderInChild(_ children: RenderChildren, taking memory: Int? = nil) throws -> Rendering {
            try children.render(order, taking: memory, within: renderer.limits, door)
        }
        // Not even looked at here.
        if let children, order.isolation != .whereNeeded { return try renderInChild(children) }
        let file = try renderer.identify(order.source)
        if let children, Codecs.isApart(file.format) { return try renderInChild(children) }
        let plan = try renderer.plan(file, order.variants)
        if let children,
            Codecs.areApart(order, of: file.format) || plan.unstoppable > Self.patience || plan.isAnimated
                || plan.memory > Self.memoryHere
        {
            return try renderInChild(children, taking: plan.memory)
        }
        let share = try door.turn.run(stoppedBy: memory.wake) { try door.enter(plan.memory) }
        defer { withExtendedLifetime(share) {} }
        let cancellation = Cancellation()
        return try door.turn.run(stoppedBy: cancellation.cancel) {
            try renderer.render(plan, assets: order.assets, cancellation)
        }
    }

    private func error(of stop: Turn.Stop) -> any Error {
        switch stop {
        case .cancelled: CancellationError()
        case .overtime:
            // It would take as long again.
            Failure(
                .timeout, "rendering takes longer than \(renderer.limits.renderTime); images.renderTime allows more",
                isRetryable: false)
        }
    }
}
