import Foundation

/// Loads images for views, with completion handlers instead of `await`. Loads run concurrently.
///
/// The completion handler of each load is called exactly once: with the image, with an error, or with
/// `CancellationError` as soon as the load is cancelled.
public final class ImageLoader: Sendable {
    private let client: HalcyonClient
    private let queue: DispatchQueue

    /// Creates a loader.
    /// - Parameters:
    ///   - client: The client that submits the jobs and loads the images.
    ///   - queue: The queue on which completion handlers are called.
    public init(_ client: HalcyonClient, completionQueue queue: DispatchQueue = .main) {
        (self.client, self.queue) = (client, queue)
    }

    /// Submits a job and loads its first image.
    /// - Returns: A task that cancels the load. The load continues if the task is released.
    @discardableResult
    public func load(
        _ job: ImageJob, completion: @escaping @Sendable (Result<ImageResponse, any Error>) -> Void
    ) -> ImageTask {
        let isCancelled = Locked(false)
        let task = Task { [client, queue] in
            let result: Result<ImageResponse, any Error>
            do { result = .success(try await client.image(for: job)) } catch { result = .failure(error) }
            // After `cancel()` on the completion queue, the handler gets no image any more.
            queue.async { completion(isCancelled.withLock { $0 } ? .failure(CancellationError()) : result) }
        }
        return ImageTask(task, isCancelled)
    }
}

/// A load that an ``ImageLoader`` has started.
public final class ImageTask: Sendable {
    private let task: Task<Void, Never>
    private let isCancelled: Locked<Bool>

    init(_ task: Task<Void, Never>, _ isCancelled: Locked<Bool>) { (self.task, self.isCancelled) = (task, isCancelled) }

    /// Cancels the load and its job. This has no effect after the completion handler has been called.
    public func cancel() {
        isCancelled.withLock { $0 = true }
        task.cancel()
    }
}
