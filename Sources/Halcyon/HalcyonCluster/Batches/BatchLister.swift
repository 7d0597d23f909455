import Concurrency
import Formats
import HalcyonCoding
import HalcyonModel
import JSON
import Kafka
import Redis
import Telemetry

/// The lists from which batches are made, and the decoder of their jobs.
public struct BatchLists: Sendable {
    /// The function that returns a page of the objects of a prefix after a key, with up to a number of objects. A page
    /// without objects is the last one.
    public typealias Objects = @Sendable (S3Prefix, _ after: String?, _ count: Int) async throws -> S3ObjectPage

    /// A part of a list of jobs.
    fileprivate struct Page {
        let jobs: [JobBuilder]
        /// The position after the page; nil at the end.
        let next: String?
    }

    let reader: JobDecoder
    private let presets: PresetCatalog
    private let index: PresetIndex
    private let objects: Objects

    /// Creates an instance from all values.
    /// - Parameters:
    ///   - reader: the decoder of jobs, with the presets of the catalog.
    ///   - presets: the presets, which are loaded again for a job whose preset is unknown.
    ///   - index: the index of jobs with presets.
    ///   - objects: the function that lists objects. It throws `JobError` or `CancellationError`.
    public init(reader: JobDecoder, presets: PresetCatalog, index: PresetIndex, objects: @escaping Objects) {
        self.reader = reader
        self.presets = presets
        self.index = index
        self.objects = objects
    }

    /// Returns the lane of the jobs of a batch.
    /// - Throws: ``JobError`` if its template is invalid.
    fileprivate func lane(_ writer: BatchWriter, _ contents: BatchListing.Contents) async throws(JobError) -> Lane {
        if case .prefix(let url) = contents { _ = try S3Prefix(url) }
        do throws(InvalidJobError) {
            return try writer.check(contents).lane
        } catch {
            guard error.missingPreset != nil else { throw error.failure }
        }
        do throws(RedisError) {
            try await presets.reload()
        } catch {
            throw JobError(.internal, "presets cannot be loaded: \(error)", cause: error)
        }
        do throws(InvalidJobError) { return try writer.check(contents).lane } catch { throw error.failure }
    }

    /// Returns a page.
    /// - Throws: ``JobError``, `CancellationError`.
    fileprivate func page(_ listing: BatchListing, count: Int, _ writer: BatchWriter) async throws -> Page {
        switch listing.contents {
        case .prefix(let url):
            let prefix = try S3Prefix(url)
            let page = try await objects(prefix, listing.after, count)
            let jobs = page.objects.filter { !$0.isFolder }.map { object in
                var job = JobBuilder()
                job.set("source", prefix.source(of: object.key))
                return job
            }
            return Page(jobs: jobs, next: page.isTruncated ? page.objects.last?.key : nil)
        case .preset(let name, let tenant, let reload):
            let page: PresetIndex.Page
            do throws(RedisError) {
                page = try await index.page(of: name, after: listing.after.flatMap { PresetIndex.Cursor($0) }, count)
            } catch {
                throw JobError(.internal, "the index of the preset cannot be read: \(error)", cause: error)
            }
            let jobs = page.jobs.filter { job in tenant.map { writer.isJob(job, of: $0) } ?? true }.map { job in
                var job = job
                if reload { job.set("cache", "reload", true.json) }
                return job
            }
            return Page(jobs: jobs, next: page.next?.text)
        }
    }
}

/// Lists the jobs of batches, and submits them.
///
/// Each message leads to one page of a list. The jobs of the page, the message for the next page (or the closing
/// message after the last one), and the offset of the message that led to them are committed in one transaction.
/// Therefore each page is submitted exactly once, whichever worker owns the partition of the messages. On brokers
/// without transactions, a page may be submitted again. Its jobs have the same indices then, and count once.
///
/// Pages are listed beside the other messages, which do not wait for them.
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

    let lists: BatchLists
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
            if let error { log.warning("a list of jobs ended early", ["batch": batch, "error": error.message]) }
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
        let writer = BatchWriter(
            batch, producer, topics: topics, reader: lists.reader, template: try JobBuilder(listing))
        let lane = try await patiently(batch) { try await lists.lane(writer, listing.contents) }
        let count = min(options.jobsPerPage, max(1, Self.pageBytes / (listing.template.count + 1024)))
        let page = try await patiently(batch) {
            try await permits.acquire()
            defer { permits.release() }
            return try await lists.page(listing, count: count, writer)
        }
        let submitted = listing.submitted + page.jobs.count
        guard submitted <= options.mostListed else {
            throw JobError(
                .tooLarge, "there are more than \(options.mostListed) jobs, the limit set by batches.maximumListed")
        }
        // The key that created the batch can cancel the jobs whose ids it has chosen.
        let owner = batches.entry(of: batch)?.batch.owner
        let headers = owner.map { [RecordHeader(OwnerHeader.name, $0)] } ?? []
        let jobs = page.jobs.enumerated().map { index, job in
            record(of: job, listing.submitted + index, writer, lane, headers)
        }
        if let position = page.next {
            var next = listing
            (next.after, next.submitted) = (position, submitted)
            return jobs + [topics.record(of: BatchMessage(batch, .list(next)))]
        }
        if case .prefix(let url) = listing.contents, submitted == 0 {
            throw JobError(.notFound, "there are no objects at \(url)")
        }
        log.info("listed the jobs of a batch", ["batch": batch, "jobs": submitted])
        return jobs + [topics.record(of: BatchMessage(batch, .close(total: submitted)))]
    }

    /// Returns the record of a job. A job that is not valid, such as that of a key which cannot be a source, is left to
    /// the worker that receives it: it fails there, and is counted.
    private func record(
        of job: JobBuilder, _ index: Int, _ writer: BatchWriter, _ lane: Lane, _ headers: [RecordHeader]
    ) -> ProducerRecord {
        do throws(InvalidJobError) {
            return topics.record(of: try writer.validated(job, index: index), headers: headers)
        } catch {
            let message = writer.draft(of: job, index: index).json
            return ProducerRecord(topic: topics.jobs(lane), value: message, headers: headers)
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
                log.info("listing jobs failed; retrying", ["batch": batch, "error": error.message])
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
