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
    /// - Throws: `HalcyonError`, with the cases of ``imageData(for:)``; `CancellationError`.
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

    /// Loads the image of a job with one request (`GET /v1/render`): it is rendered unless it is stored already. The
    /// job is cancelled when the task is cancelled. The key needs the scope `submit`.
    ///
    /// The gateway chooses the lane `high` for a job without a priority.
    /// - Parameter job: A job with one output. Its fields must describe the image alone, as ``isRenderable(_:)`` tells.
    /// - Throws: `HalcyonError`: `invalidRequest` for another job, and a problem with the failure code if the job
    ///   failed; `CancellationError`.
    public func render(_ job: ImageJob) async throws -> LoadedImage {
        guard let query = renderingQuery(of: job) else {
            throw HalcyonError.invalidRequest(
                "the job has fields that /v1/render does not accept, or is longer than "
                    + "\(configuration.maximumQueryBytes) bytes; submit it instead")
        }
        guard let image = try await rendering(query, entityTag: nil).image else {
            throw HalcyonError.invalidResponse("304 to a request without a condition")
        }
        return image
    }

    /// Loads the facts about the source of a job with one request (`GET /v1/info`). No image is rendered. The key needs
    /// the scope `submit`.
    /// - Parameter job: A job with the fields on which facts depend (``ImageJob/Output/info``, `page`, `tolerance` and
    ///   the findings) and those of caching.
    /// - Throws: `HalcyonError`: `invalidRequest` for another job, and a problem with the failure code if the job
    ///   failed; `CancellationError`.
    public func info(_ job: ImageJob) async throws -> ImageEvent.SourceInfo {
        var job = job
        let location = job.output.info?.location
        job.output.info = nil
        guard var query = query(of: job, Self.infoParameters) else {
            throw HalcyonError.invalidRequest("the job has fields that /v1/info does not accept")
        }
        if let location { query.append(("location", "\(location)")) }
        var request = Request(path: ["info"], kind: .longPoll)
        request.query = query
        return try Self.decode(ImageEvent.SourceInfo.self, try await transport.send(request))
    }

    private static let infoParameters: Set = [
        "source", "tenant", "priority", "tolerance", "maxAge", "cache", "tags", "blurhash", "dominantColor", "palette",
        "thumbhash", "phash", "faces", "page",
    ]

    /// True if a job can be rendered with one request: it has one output, none of the fields that concern the job
    /// rather than the image (`id`, `headers`, `metadata` and so on), and fits into a URL.
    public func isRenderable(_ job: ImageJob) -> Bool { renderingQuery(of: job) != nil }

    /// The response to a rendering.
    struct Rendering: Sendable {
        /// The image; nil if the known one is current.
        let image: LoadedImage?
        let entityTag: String?
        let reuse: ResponseReuse
    }

    /// The parameters of `/v1/render`, which have the names of the fields of a job (docs/gateway.md).
    private static let renderingParameters: Set = [
        "contentMode", "scaleOptions", "position", "interpolationQuality", "background", "format", "tenant", "priority",
        "tolerance", "preset", "source", "width", "height", "screenScale", "cropRect", "trim", "gravity",
        "sizeForDisplay", "sizer", "upscale", "linearLight", "before", "processors", "quality", "lossless", "effort",
        "progressive", "stripMetadata", "keepProfile", "page", "frames", "maximumBytes", "allowResize",
        "nearLossless", "chromaSubsampling", "bitDepth", "quantize", "profile", "maxAge", "cache", "tags", "fallback",
    ]

    /// The query for the image of a job, in the order of the names, so that equal jobs have equal URLs; nil if it is
    /// too long or cannot describe the job.
    func renderingQuery(of job: ImageJob) -> [(name: String, value: String)]? {
        query(of: job, Self.renderingParameters)
    }

    private func query(of job: ImageJob, _ names: Set<String>) -> [(name: String, value: String)]? {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // Numbers that JSON cannot express are refused when the job is submitted.
        guard let fields = try? JSONDecoder().decode([String: JSONValue].self, from: encoder.encode(job)) else {
            return nil
        }
        var query: [(name: String, value: String)] = []
        for (name, value) in fields.sorted(by: { $0.key < $1.key }) {
            guard names.contains(name) else { return nil }
            if case .string(let text) = value {
                query.append((name, text))
            } else {
                // The value comes from JSON.
                guard let json = try? encoder.encode(value) else { return nil }
                query.append((name, String(decoding: json, as: UTF8.self)))
            }
        }
        let text = Request(path: [], query: query).queryText
        return text.utf8.count <= configuration.maximumQueryBytes ? query : nil
    }

    /// Renders an image, for up to ``Configuration/jobTimeout``.
    /// - Parameter entityTag: The tag of the known image; nil if there is none.
    func rendering(_ query: [(name: String, value: String)], entityTag: String?) async throws -> Rendering {
        let deadline = ContinuousClock.now + configuration.jobTimeout
        while true {
            let start = ContinuousClock.now
            let wait = min(max(.zero, deadline - start), configuration.longPollInterval)
            // Errors are JSON only for clients that do not prefer images.
            var request = Request(path: ["render"], fields: ["Accept": "*/*"], kind: .longPoll)
            request.query = query + [("wait", wait.secondsText)]
            request.fields["If-None-Match"] = entityTag
            do {
                let answer = try await transport.answer(
                    to: request, limit: configuration.maximumImageBytes,
                    isRetried: { $0.isTransient && !$0.isRenderingFailure && !$0.isRenderingTimeout })
                return Self.rendering(answer)
            } catch let error as HalcyonError where error.isRenderingTimeout && ContinuousClock.now < deadline {
                // Rendering continues, and the next request joins it. Limits the rate at a gateway that responds at
                // once.
                if ContinuousClock.now - start < .milliseconds(250) { try await Task.sleep(for: .milliseconds(250)) }
            }
        }
    }

    private static func rendering(_ answer: RetryingTransport.Answer) -> Rendering {
        let head = answer.head
        var image: LoadedImage?
        if head.status != 304 {
            image = LoadedImage(
                data: answer.body, mediaType: head.header("Content-Type") ?? "application/octet-stream",
                size: head.header("Halcyon-Image-Size").flatMap { LoadedImage.Size($0) }, cacheStatus: .network,
                failure: head.header("Halcyon-Failure").map { FailureCode(rawValue: $0) })
        }
        return Rendering(image: image, entityTag: head.header("ETag"), reuse: ResponseReuse { head.header($0) })
    }

    /// Loads the file of a stored result. The key needs the scope `read`.
    /// - Throws: `HalcyonError`, of the kind `notFound` if there is no such result (any more); `CancellationError`.
    public func imageData(forKey key: String) async throws -> Data {
        // The gateway may redirect to the result store (gateway.redirectsToStore).
        let request = Request(path: ["images", key], followsRedirect: true)
        return try await transport.send(request, limit: configuration.maximumImageBytes)
    }

    /// Loads the file of an output of a `ready` event, however it was delivered: from the event itself, from the
    /// gateway, or else from its public URL or the address of its upload.
    ///
    /// A file that is neither stored nor small enough for the event can be loaded once. The key needs the scope `read`.
    /// - Throws: `HalcyonError`: a problem, of the kind `notFound` if the gateway has no such result (any more), and
    ///   `notDelivered` if only the submitter knows the address of the upload; `CancellationError`.
    public func imageData(for variant: ImageEvent.Variant) async throws -> Data {
        if let data = variant.data { return data }
        var missing: HalcyonError
        do {
            return try await imageData(forKey: variant.key)
        } catch HalcyonError.problem(let problem) where problem.status == 404 { missing = .problem(problem) }
        for address in [variant.url, variant.put].compactMap({ $0 }) {
            guard let url = URL(string: address), !["", "/"].contains(url.path) else {
                throw HalcyonError.notDelivered(address: address)
            }
            do {
                return try await transport.send(Request(address: url), limit: configuration.maximumImageBytes)
            } catch HalcyonError.problem(let problem) { missing = .problem(problem) }
        }
        throw missing
    }

    /// Submits a job and waits for its end. The job is cancelled if that is given up.
    func end(of job: ImageJob) async throws -> ImageEvent.Ready {
        var job = job
        // Stored images are loaded by key; they need not be in the event too.
        if job.delivery == .inline { job.delivery = .reference }
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
