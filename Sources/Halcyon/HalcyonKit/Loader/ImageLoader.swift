import Foundation

/// Loads images for views: a completion in place of `await`.
///
/// A completion is called exactly once for each load: with the image, with why there is none, or with `CancellationError` as soon as the load is
/// cancelled, also when no gateway answers.
public final class ImageLoader: Sendable {
    private let client: HalcyonClient
    private let queue: DispatchQueue

    /// - Parameters:
    ///   - client: who submits the jobs and loads the images.
    ///   - queue: where completions are called. The main queue, which a program without a run loop must serve itself, unless given.
    public init(_ client: HalcyonClient, completionQueue queue: DispatchQueue = .main) {
        (self.client, self.queue) = (client, queue)
    }

    /// Submits a job and loads its first image.
    /// - Returns: what cancels it. The load goes on when nobody keeps that.
    @discardableResult
    public func load(
        _ job: ImageJob, completion: @escaping @Sendable (Result<DeliveredImage, any Error>) -> Void
    ) -> ImageLoad {
        let load = ImageLoad { [queue] result in queue.async { completion(result) } }
        let task = Task { [client] in
            do { load.end(.success(try await client.image(for: job))) } catch { load.end(.failure(error)) }
        }
        load.onCancel { task.cancel() }
        return load
    }
}

/// A load that is under way.
public final class ImageLoad: Sendable {
    private struct State {
        var completion: (@Sendable (Result<DeliveredImage, any Error>) -> Void)?
        var cancel: (@Sendable () -> Void)?
    }

    private let state: Guarded<State>

    init(_ completion: @escaping @Sendable (Result<DeliveredImage, any Error>) -> Void) {
        state = Guarded(State(completion: completion))
    }

    /// Ends the load and cancels its job, unless it has ended: its completion is called with `CancellationError`.
    public func cancel() {
        let cancel = state.withLock { $0.cancel }
        end(.failure(CancellationError()))
        cancel?()
    }

    func onCancel(_ cancel: @escaping @Sendable () -> Void) { state.withLock { $0.cancel = cancel } }

    func end(_ result: Result<DeliveredImage, any Error>) {
        let completion = state.withLock { state in
            defer { state.completion = nil }
            return state.completion
        }
        completion?(result)
    }
}
