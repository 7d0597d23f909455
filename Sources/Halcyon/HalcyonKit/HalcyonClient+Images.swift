import Foundation

/// An image that is here.
public struct DeliveredImage: Sendable, Equatable {
    /// The file.
    public let data: Data
    /// Its facts.
    public let variant: ImageEvent.Variant
    /// What the job's event said.
    public let ready: ImageEvent.Ready
}

extension HalcyonClient {
    /// Submits a job, waits for its end and loads its first image. When the task is cancelled, so is the job. Keys with the scopes `submit` and
    /// `read` are needed.
    /// - Throws: `HalcyonError`; `CancellationError`.
    public func image(for job: ImageJob) async throws -> DeliveredImage {
        let ready = try await end(of: job)
        guard let variant = ready.variants.first else { throw HalcyonError.notUnderstood("an end without an image") }
        return try await load(variant, of: ready)
    }

    /// As ``image(for:)``, all images of a job with variants, in their order.
    public func images(for job: ImageJob) async throws -> [DeliveredImage] {
        let ready = try await end(of: job)
        var images: [DeliveredImage] = []
        for variant in ready.variants { images.append(try await load(variant, of: ready)) }
        return images
    }

    /// The file of a stored result, whole. A key with the scope `read` is needed.
    /// - Throws: `HalcyonError`, of the kind `notFound` where there is none (any more); `CancellationError`.
    public func image(key: String) async throws -> Data {
        try await desk.ask(Request(path: ["images", key]), limit: desk.options.maximumImageBytes).body
    }

    /// The file of an output of a `ready` event: from the event where it stands there, because it is not stored or was asked for, and else from the
    /// gateway. What is not stored and is too large for an event is given once. A key with the scope `read` is needed.
    /// - Throws: `HalcyonError`, of the kind `notFound` where there is none (any more); `CancellationError`.
    public func image(of variant: ImageEvent.Variant) async throws -> Data {
        if let data = variant.data { return data }
        return try await image(key: variant.key)
    }

    private func load(_ variant: ImageEvent.Variant, of ready: ImageEvent.Ready) async throws -> DeliveredImage {
        DeliveredImage(data: try await image(of: variant), variant: variant, ready: ready)
    }

    /// Submits a job and waits for its end; who no longer waits has it cancelled.
    private func end(of job: ImageJob) async throws -> ImageEvent.Ready {
        var job = job
        // What is stored is read from there, and not carried by events too.
        job.delivery = nil
        job.id = job.id ?? Self.newID()
        let (id, submitted) = (job.id!, job)
        let submission = Task { try await submit(submitted) }
        do {
            _ = try await value(of: submission)
            return try await waitForEnd(of: id)
        } catch {
            if error is CancellationError || error as? HalcyonError == .jobLate(id: id) {
                // Not before the gateway has said whether it has the job: only what was written before can be cancelled.
                Task {
                    submission.cancel()
                    _ = await submission.result
                    try? await cancel(job: id)
                }
            }
            throw error
        }
    }

    private func waitForEnd(of id: String) async throws -> ImageEvent.Ready {
        let end = ContinuousClock.now + desk.options.jobTime
        while case let begun = ContinuousClock.now, begun < end {
            let state = try await state(ofJob: id, wait: min(desk.options.poll, end - begun))
            switch state.event?.kind {
            case .ready(let ready)?: return ready
            case .failed(let failed)?: throw HalcyonError.jobFailed(failed)
            case .cancelled?: throw HalcyonError.jobCancelled(id: id)
            case .superseded(_, let generation)?: throw HalcyonError.jobSuperseded(id: id, by: generation)
            default: break
            }
            if state.state.isEnd {
                throw HalcyonError.notUnderstood("the job \(id) has ended without an event")
            }
            // A gateway that does not let anybody wait is not asked all the time.
            if ContinuousClock.now - begun < .milliseconds(250) { try await Task.sleep(for: .milliseconds(250)) }
        }
        throw HalcyonError.jobLate(id: id)
    }
}
