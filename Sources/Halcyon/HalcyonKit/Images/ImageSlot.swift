import Foundation

/// A place that shows one image at a time, such as a cell that is reused.
///
/// A new request cancels the former one. If all calls are made on the loader's completion queue (the main queue, unless
/// it was given another one), a late stage of a former request is never delivered. The image that memory has is best
/// shown without a slot, at once: ``ImageLoader/cachedImage(for:)``.
public final class ImageSlot: Sendable {
    private struct State {
        var generation: UInt64 = 0
        var task: Task<Void, Never>?
    }

    private let loader: ImageLoader
    private let state = Locked(State())

    /// Creates an empty slot.
    public init(_ loader: ImageLoader) { self.loader = loader }

    deinit { state.withLock { $0.task }?.cancel() }

    /// Loads the image of a request in stages, instead of that of the former request.
    /// - Parameters:
    ///   - request: The request.
    ///   - deliver: Called on the loader's completion queue for each stage, and for the error that ends them, which is
    ///     never `CancellationError`.
    public func load(_ request: ImageRequest, deliver: @escaping @Sendable (Result<ImageStage, any Error>) -> Void) {
        let loader = loader
        replace { [weak self] generation in
            Task {
                do {
                    for try await stage in loader.stages(request) {
                        self?.post(.success(stage), generation, deliver)
                    }
                } catch { if !(error is CancellationError) { self?.post(.failure(error), generation, deliver) } }
            }
        }
    }

    /// Cancels the request, if there is one.
    public func clear() { replace { _ in nil } }

    private func replace(_ start: (UInt64) -> Task<Void, Never>?) {
        let former = state.withLock { state in
            state.generation += 1
            let former = state.task
            state.task = start(state.generation)
            return former
        }
        former?.cancel()
    }

    /// Delivers a result, unless the slot is released or has another request by then.
    private func post(
        _ result: Result<ImageStage, any Error>, _ generation: UInt64,
        _ deliver: @escaping @Sendable (Result<ImageStage, any Error>) -> Void
    ) {
        loader.deliveryQueue.async { [weak self] in
            if self?.isCurrent(generation) == true { deliver(result) }
        }
    }

    private func isCurrent(_ generation: UInt64) -> Bool { state.withLock { $0.generation == generation } }
}

/// A load that an ``ImageLoader`` has started.
public final class ImageTask: Sendable {
    private let task: Task<Void, Never>
    private let isCancelled: Locked<Bool>

    init(_ task: Task<Void, Never>, _ isCancelled: Locked<Bool>) { (self.task, self.isCancelled) = (task, isCancelled) }

    /// Cancels the load, and its job unless somebody else wants the image. This has no effect after the completion
    /// handler has been called.
    public func cancel() {
        isCancelled.withLock { $0 = true }
        task.cancel()
    }
}
