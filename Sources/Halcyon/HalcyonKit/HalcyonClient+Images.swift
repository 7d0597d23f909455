import Foundation

/// An image that a job has made.
public struct ImageResponse: Sendable, Equatable {
    /// The file.
    public let data: Data
    /// The size, format and other properties of the file.
    public let variant: ImageEvent.Variant
    /// The content of the job's event.
    public let ready: ImageEvent.Ready
}

extension HalcyonClient {
    /// Submits a job, waits for its end and loads its first image. The job is cancelled when the task is cancelled.
    /// The key needs the scopes `submit` and `read`.
    /// - Throws: `HalcyonError`; `CancellationError`.
    public func image(for job: ImageJob) async throws -> ImageResponse {
        let ready = try await end(of: job)
        guard let variant = ready.variants.first else { throw HalcyonError.invalidResponse("no image is ready") }
        return ImageResponse(data: try await imageData(for: variant), variant: variant, ready: ready)
    }

    /// Like ``image(for:)``, but loads all images of a job with variants, concurrently.
    /// - Returns: The images in the order of the variants, without those that could not be made.
    public func images(for job: ImageJob) async throws -> [ImageResponse] {
        let ready = try await end(of: job)
        return try await withThrowingTaskGroup(of: (index: Int, data: Data).self) { group in
            for (index, variant) in ready.variants.enumerated() {
                group.addTask { (index, try await imageData(for: variant)) }
            }
            var files: [(index: Int, data: Data)] = []
            for try await file in group { files.append(file) }
            files.sort { $0.index < $1.index }
            return zip(files, ready.variants).map { file, variant in
                ImageResponse(data: file.data, variant: variant, ready: ready)
            }
        }
    }

    /// Loads the file of a stored result. The key needs the scope `read`.
    /// - Throws: `HalcyonError`, of the kind `notFound` if there is no such result (any more); `CancellationError`.
    public func imageData(forKey key: String) async throws -> Data {
        try await transport.send(Request(path: ["images", key]), limit: configuration.maximumImageBytes)
    }

    /// Loads the file of an output of a `ready` event: from the event itself, or else from the gateway.
    ///
    /// A file that is neither stored nor small enough for the event can be loaded once. The key needs the scope `read`.
    /// - Throws: `HalcyonError`, of the kind `notFound` if there is no such result (any more); `CancellationError`.
    public func imageData(for variant: ImageEvent.Variant) async throws -> Data {
        if let data = variant.data { return data }
        return try await imageData(forKey: variant.key)
    }

    /// Submits a job and waits for its end. The job is cancelled if that is given up.
    private func end(of job: ImageJob) async throws -> ImageEvent.Ready {
        var job = job
        // Stored images are loaded by key; they need not be in the event too.
        job.delivery = nil
        let id = job.id ?? Self.newID()
        job.id = id
        // The submission is completed even if the task is cancelled, but nobody waits for it then.
        let (submitted, continuation) = AsyncThrowingStream.makeStream(of: Void.self)
        let submission = Task { [job] in
            do {
                try await submit(job)
                continuation.finish()
            } catch { continuation.finish(throwing: error) }
        }
        do {
            for try await _ in submitted {}
            try Task.checkCancellation()
            return try await waitForEnd(of: id)
        } catch {
            if error is CancellationError || error as? HalcyonError == .timedOut(id: id) {
                // Only a job that the gateway has written can be cancelled.
                Task {
                    submission.cancel()
                    await submission.value
                    // Nobody waits for the answer; a job that is not cancelled is only done in vain.
                    try? await cancelJob(id: id)
                }
            }
            throw error
        }
    }

    private func waitForEnd(of id: String) async throws -> ImageEvent.Ready {
        let deadline = ContinuousClock.now + configuration.jobTimeout
        while case let start = ContinuousClock.now, start < deadline {
            let state = try await jobState(id: id, timeout: deadline - start)
            switch state.event?.kind {
            case .ready(let ready)?: return ready
            case .failed(let failed)?: throw HalcyonError.jobFailed(failed)
            case .cancelled?: throw HalcyonError.jobCancelled(id: id)
            case .superseded(_, let generation)?: throw HalcyonError.jobSuperseded(id: id, by: generation)
            default: break
            }
            if state.status.isTerminal { throw HalcyonError.invalidResponse("job \(id) has ended without an event") }
            // Limits the rate at a gateway that responds at once.
            if ContinuousClock.now - start < .milliseconds(250) { try await Task.sleep(for: .milliseconds(250)) }
        }
        throw HalcyonError.timedOut(id: id)
    }
}
