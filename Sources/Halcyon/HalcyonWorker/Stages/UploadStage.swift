import Concurrency
import HalcyonModel
import HalcyonSources
import Telemetry

/// Uploads results to the URLs that jobs name, by HTTP PUT, before the final event is published. A repeated job uploads
/// the same bytes to the same URLs again, except those that are known to have been uploaded.
struct UploadStage: Sendable {
    let loader: SourceLoader
    /// The limits of each target. A target that is slow or down delays only uploads to itself.
    let targets: TargetLimiter
    /// The permits of concurrent uploads to all targets.
    let permits: PrioritySemaphore
    /// The time for which an upload waits for its target and for a permit. Then the job is postponed.
    let patience: Duration
    let metrics: UploadMetrics

    /// Uploads the results if the job requests it, all variants concurrently.
    /// - Returns: The event to publish. The bytes of uploaded results are not included in it.
    /// - Throws: ``JobError``; ``PostponedAttempt`` if a target accepts no request now; `CancellationError` if the job
    ///   is cancelled.
    func upload(_ ready: Ready, of job: JobContext) async throws -> Ready {
        guard case .put(let targets) = job.job.delivery else { return ready }
        let uploads = try uploads(of: ready, to: targets, job)
        let failures = await send(uploads, job)
        let refused = failures.filter { ($0.value as? JobError)?.isRetryable == false }
        if !job.job.partial, let (index, failure) = refused.min(by: { $0.key < $1.key }) {
            throw report(failure, index, job)
        }
        let passing = failures.filter { refused[$0.key] == nil }.sorted { $0.key < $1.key }
        if passing.contains(where: { $0.value is CancellationError }) { throw CancellationError() }
        // A failed request is an attempt, a postponed one is not.
        let failed = passing.filter { $0.value is JobError }
        if let (index, failure) = failed.min(by: { $0.value.retryAfter > $1.value.retryAfter }) ?? passing.first {
            throw report(failure, index, job)
        }
        return try ready.delivered(uploads, refused, job)
    }

    /// Sends uploads concurrently. If one is refused for good, the others of a job without partial results are ended.
    /// - Returns: The errors by the index of the variant.
    private func send(_ uploads: [Upload], _ job: JobContext) async -> [Int: any Error] {
        await withTaskGroup(of: (Int, (any Error)?).self) { group in
            for upload in uploads {
                group.addTask {
                    do {
                        try await put(upload, job)
                        return (upload.output.index, nil)
                    } catch {
                        return (upload.output.index, error)
                    }
                }
            }
            var failures: [Int: any Error] = [:]
            for await (index, error) in group {
                failures[index] = error
                if !job.job.partial, (error as? JobError)?.isRetryable == false { group.cancelAll() }
            }
            return failures
        }
    }

    /// Sends one upload when the limits permit it.
    private func put(_ upload: Upload, _ job: JobContext) async throws {
        guard !job.hasUploaded(upload.sha256, ofVariant: upload.output.index) else { return metrics.count(.skipped) }
        // The caller ensures that the results of a job with uploads have bytes.
        guard let body = upload.body else {
            throw JobError(.internal, "the result was removed before it could be uploaded")
        }
        let (target, priority) = (Origin(upload.url), job.priority)
        let deadline = ContinuousClock.now + patience
        guard try await targets.acquire(target, priority, until: deadline) else { throw postponed(upload) }
        var outcome = TargetLimiter.Breaker.Outcome.unknown
        defer { targets.release(target, outcome) }
        guard try await permits.acquire(priority, until: deadline) else { throw postponed(upload) }
        defer { permits.release() }
        let start = ContinuousClock.now
        do {
            try await loader.put(body, mediaType: upload.output.format.mediaType, at: upload.url)
        } catch {
            job.trace?.put(at: upload.url, body.count, Interval(from: start), error)
            if let failure = error as? JobError {
                outcome = TargetLimiter.Breaker.Outcome(of: failure)
                metrics.count(.failed)
            }
            throw error
        }
        outcome = .success
        job.trace?.put(at: upload.url, body.count, Interval(from: start), nil)
        job.uploaded(upload.sha256, ofVariant: upload.output.index)
        metrics.count(.delivered)
        metrics.bytes.add(body.count)
    }

    private func postponed(_ upload: Upload) -> PostponedAttempt {
        metrics.count(.postponed)
        return PostponedAttempt(
            failure: JobError(
                .originUnavailable, "the host is down or has too many uploads waiting"
            ).within("putting the result at \(upload.url.host)"))
    }

    /// Returns an error that names the variant and the variants that have been uploaded.
    private func report(_ error: any Error, _ index: Int, _ job: JobContext) -> any Error {
        func named(_ failure: JobError) -> JobError {
            var failure = failure.forVariant(0).qualified([index], of: job.keys.count)
            let uploaded = job.uploads.keys.sorted().map { "variants[\($0)]" }.joined(separator: ", ")
            if !uploaded.isEmpty, job.keys.count > 1 { failure.message += "; uploaded before: \(uploaded)" }
            return failure
        }
        return switch error {
        case let postponed as PostponedAttempt: PostponedAttempt(failure: named(postponed.failure))
        case let failure as JobError: named(failure)
        default: error
        }
    }

    /// Returns the uploads of a job.
    /// - Throws: ``JobError`` `invalid_job` if the template of the job expands to the same URL twice or to none.
    private func uploads(of ready: Ready, to targets: UploadTargets, _ job: JobContext) throws(JobError) -> [Upload] {
        let labels = job.job.labels
        let failed = Set(ready.failures.compactMap(\.variant))
        let indices = job.keys.indices.filter { !failed.contains($0) }
        var uploads: [Upload] = []
        var used: [String: Int] = [:]
        for (index, result) in zip(indices, ready.results) {
            let facts = result.facts
            let output = UploadTemplate.Output(
                label: labels[index], index: index, key: job.keys[index], width: facts.width, height: facts.height,
                format: facts.format)
            let (url, shown): (WebURL, String)
            switch targets {
            case .urls(let urls): (url, shown) = (urls[index], Origin(urls[index]).description)
            case .template(let template):
                do throws(JobError) {
                    url = try template.url(for: output)
                } catch {
                    throw error.within("delivery.put").forVariant(0).qualified([index], of: job.keys.count)
                }
                shown = url.withoutSecrets
            }
            if let other = used.updateValue(index, forKey: url.canonical) {
                throw JobError(
                    .invalidJob,
                    "delivery.put: variants[\(other)] and variants[\(index)] have the same URL; add a placeholder such "
                        + "as {variant}")
            }
            uploads.append(
                Upload(output: output, url: url, shown: shown, body: result.inline, sha256: facts.sha256))
        }
        return uploads
    }
}

extension Error {
    /// The minimum delay before a retry, in seconds.
    fileprivate var retryAfter: Double { (self as? JobError)?.retryAfter ?? 0 }
}

/// The upload of a variant.
private struct Upload: Sendable {
    let output: UploadTemplate.Output
    /// The URL. It may be a secret.
    let url: WebURL
    /// The address to publish.
    let shown: String
    /// The bytes; nil if the result was removed in the meantime.
    let body: [UInt8]?
    let sha256: String
}

extension Ready {
    /// Returns the event of a job whose results were uploaded, except the refused ones.
    /// - Throws: ``JobError`` if no variant was uploaded.
    fileprivate func delivered(_ uploads: [Upload], _ refused: [Int: any Error], _ job: JobContext)
        throws(JobError) -> Ready
    {
        var ready = self
        ready.results = []
        for (var result, upload) in zip(results, uploads) {
            if let failure = refused[upload.output.index] as? JobError {
                ready.failures.append(failure.forVariant(0).qualified([upload.output.index], of: job.keys.count))
            } else {
                result.inline = nil
                result.uploadedTo = upload.shown
                ready.results.append(result)
            }
        }
        ready.failures.sort { ($0.variant ?? 0) < ($1.variant ?? 0) }
        if ready.results.isEmpty, let failure = ready.failures.first { throw failure }
        return ready
    }
}

extension TargetLimiter.Breaker.Outcome {
    /// Creates the outcome of a failed upload. A response that rejects one URL, such as an expired signature, says that
    /// the target is up.
    fileprivate init(of failure: JobError) {
        self = failure.isRetryable ? .failure : failure.code == .httpError ? .success : .unknown
    }
}

extension WebURL {
    /// The URL without its user, query and fragment.
    fileprivate var withoutSecrets: String {
        let path = canonical.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false).last ?? ""
        return "\(Origin(self))/\(path.prefix { $0 != "?" })"
    }
}

/// The metrics of uploads.
struct UploadMetrics: Sendable {
    /// The number of uploaded bytes.
    let bytes: Counter
    private let uploads: [UploadOutcome: Counter]

    /// The outcome of an upload, temporary or final.
    enum UploadOutcome: String, CaseIterable {
        /// The target responded with a 2xx status.
        case delivered
        /// The request failed.
        case failed
        /// No request was made, because the target has too many uploads waiting or its circuit breaker is open.
        case postponed
        /// No request was made, because an earlier attempt of the job has uploaded the same bytes.
        case skipped
    }

    init(_ metrics: Metrics) {
        bytes = metrics.counter("halcyon_put_bytes_total", help: "Bytes of images uploaded by HTTP PUT.")
        uploads = Dictionary(
            uniqueKeysWithValues: UploadOutcome.allCases.map { outcome in
                let counter = metrics.counter(
                    "halcyon_puts_total", help: "Uploads of images by HTTP PUT, by outcome.",
                    labels: ["outcome": outcome.rawValue])
                return (outcome, counter)
            })
    }

    /// Counts an upload.
    func count(_ outcome: UploadOutcome) { uploads[outcome]?.add() }
}
