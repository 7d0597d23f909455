import Concurrency
import Formats
import HalcyonCoding
import HalcyonModel
import JSON
import Kafka
import Redis
import Telemetry

/// The objects from which batches are made, and the decoder of their jobs.
public struct BatchObjects: Sendable {
    /// Returns a page of the objects of a prefix after a key, with up to a number of objects.
    /// - Throws: `JobError`, `CancellationError`.
    public typealias List = @Sendable (S3Prefix, _ after: String?, _ count: Int) async throws -> S3ObjectPage

    private let list: List
    fileprivate let reader: JobDecoder
    private let presets: PresetCatalog

    /// Creates an instance from all values.
    /// - Parameters:
    ///   - reader: the decoder of jobs, with the presets of the catalog.
    ///   - presets: the presets, which are loaded again for a job whose preset is unknown.
    ///   - list: the function that lists objects.
    public init(reader: JobDecoder, presets: PresetCatalog, list: @escaping List) {
        self.reader = reader
        self.presets = presets
        self.list = list
    }

    /// Returns the lane of the jobs of a batch.
    /// - Throws: ``JobError`` if its template is invalid.
    fileprivate func lane(_ writer: BatchWriter, _ prefix: S3Prefix) async throws(JobError) -> Lane {
        do throws(InvalidJobError) {
            return try writer.check(prefix).lane
        } catch {
            guard error.missingPreset != nil else { throw error.failure }
        }
        do throws(RedisError) {
            try await presets.reload()
        } catch {
            throw JobError(.internal, "presets cannot be loaded: \(error)", cause: error)
        }
        do throws(InvalidJobError) { return try writer.check(prefix).lane } catch { throw error.failure }
    }

    fileprivate func page(_ prefix: S3Prefix, after last: String?, count: Int) async throws -> S3ObjectPage {
        try await list(prefix, last, count)
    }
}

/// Lists the objects of batches, and submits their jobs.
///
/// Each message leads to one page of a list. The jobs of the page, the message for the next page (or the closing
/// message after the last one), and the offset of the message that led to them are committed in one transaction, so that
/// each page is submitted exactly once, whichever worker owns the partition of the messages. Pages are listed beside the
/// other messages, which do not wait for them. On brokers without transactions, a page may be submitted again. Its jobs
/// have the same indexes then, and count once.
struct BatchLister: Sendable {
    /// A message that leads to a page.
    struct Request: Sendable {
        /// The id of the batch.
        let batch: String
        let listing: BatchListing
        let delivery: JobDelivery
    }

    /// The batch was cancelled while a server did not respond.
    private struct BatchCancelled: Error {}

    let objects: BatchObjects
    let batches: BatchLog
    let options: BatchOptions
    let producer: Producer
    let outbox: BatchOutbox
    let topics: Topics
    let permits: PrioritySemaphore
    let refusals: Refusals
    let log: Log

    /// The approximate maximum size of the jobs of a page, in bytes.
    private static let pageBytes = 4 << 20

    /// Handles requests, several at a time, until the task is cancelled or the stream ends.
    func run(_ requests: AsyncStream<Request>) async {
        await withDiscardingTaskGroup { group in
            for await request in requests { group.addTask { await handle(request) } }
        }
    }

    private func handle(_ request: Request) async {
        let delivery = request.delivery
        guard delivery.releaseOrReturn() else { return }
        do {
            let forms = try await delivery.untilRecalled { try await records(for: request) }
            guard delivery.claimOrReturn() else { return }
            try await outbox.complete(delivery, publishingOneOf: forms, refusals)
        } catch {
            // The partition was revoked, or the worker shuts down. The next owner lists the page.
            delivery.returnToQueue()
        }
    }

    /// Returns what follows from a request, in forms of decreasing size.
    /// - Throws: `CancellationError`.
    private func records(for request: Request) async throws -> [[ProducerRecord]] {
        let (listing, batch) = (request.listing, request.batch)
        func end(_ error: JobError?) -> ProducerRecord {
            if let error { log.warning("a list of objects ended early", ["batch": batch, "error": error.message]) }
            return topics.record(
                of: BatchMessage(batch, .close(total: listing.submitted, error: error.map { BatchError($0) })))
        }
        if batches.isCancelled(batch) { return [[end(nil)]] }
        do {
            let tooLarge = JobError(
                .invalidJob, "jobs with this template exceed the maximum message size of the brokers")
            return [try await records(of: listing, batch), [end(tooLarge)]]
        } catch let error as JobError {
            return [[end(error)]]
        } catch is BatchCancelled {
            return [[end(nil)]]
        }
    }

    /// Returns the jobs of a page and the message that follows them.
    /// - Throws: ``JobError``, `CancellationError`.
    private func records(of listing: BatchListing, _ batch: String) async throws -> [ProducerRecord] {
        let prefix = try S3Prefix(listing.prefix)
        let writer = BatchWriter(
            batch, producer, topics: topics, reader: objects.reader, template: try JobBuilder(listing))
        let lane = try await patiently(batch) { try await objects.lane(writer, prefix) }
        let count = min(options.objectsPerPage, max(1, Self.pageBytes / (listing.template.count + 1024)))
        let page = try await patiently(batch) {
            try await permits.acquire()
            defer { permits.release() }
            return try await objects.page(prefix, after: listing.after, count: count)
        }
        let files = page.objects.filter { !$0.isFolder }
        let submitted = listing.submitted + files.count
        guard submitted <= options.mostObjects else {
            throw JobError(
                .tooLarge,
                "\(prefix.text) has more than \(options.mostObjects) objects, the limit set by batches.maximumObjects")
        }
        let jobs = files.enumerated().map { index, object in
            record(of: prefix.source(of: object.key), listing.submitted + index, writer, lane)
        }
        if page.isTruncated, let last = page.objects.last {
            var next = listing
            (next.after, next.submitted) = (last.key, submitted)
            return jobs + [topics.record(of: BatchMessage(batch, .list(next)))]
        }
        guard submitted > 0 else { throw JobError(.notFound, "there are no objects at \(prefix.text)") }
        log.info("listed the objects of a batch", ["batch": batch, "jobs": submitted])
        return jobs + [topics.record(of: BatchMessage(batch, .close(total: submitted)))]
    }

    /// Returns the record of a job. A key that is not a valid source is left to the worker that receives the job: the job
    /// fails there, and is counted.
    private func record(of source: String, _ index: Int, _ writer: BatchWriter, _ lane: Lane) -> ProducerRecord {
        var job = JobBuilder()
        job.set("source", source)
        do throws(InvalidJobError) {
            return topics.record(of: try writer.validated(job, index: index))
        } catch {
            return ProducerRecord(
                topic: topics.jobs(lane), key: Array(source.utf8), value: writer.draft(of: job, index: index).json)
        }
    }

    /// Tries again while a server does not respond, for as long as ``BatchOptions/listPatience``.
    /// - Throws: The last ``JobError``, `CancellationError`.
    private func patiently<Value: Sendable>(
        _ batch: String, _ body: @Sendable () async throws -> Value
    ) async throws -> Value {
        var backoff = Backoff(initial: .milliseconds(500), maximum: .seconds(10), jitter: 0.5)
        let end = ContinuousClock.now + options.listPatience
        while true {
            do {
                return try await body()
            } catch let error as JobError where error.isRetryable {
                let delay = backoff.next(atLeast: .seconds(error.retryAfter ?? 0))
                guard ContinuousClock.now + delay < end else { throw error }
                log.info("listing objects failed; retrying", ["batch": batch, "error": error.message])
                try await Task.sleep(for: delay)
                if batches.isCancelled(batch) { throw BatchCancelled() }
            }
        }
    }
}

extension JobBuilder {
    /// The template of a list.
    fileprivate init(_ listing: BatchListing) throws(JobError) {
        do throws(JSONError) {
            try self.init(json: listing.template, maximumSize: listing.template.count)
        } catch {
            throw JobError(.invalidJob, "invalid template: \(error)")
        }
    }
}
