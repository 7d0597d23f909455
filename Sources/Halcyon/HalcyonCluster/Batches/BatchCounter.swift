import Concurrency
import Formats
import HalcyonCoding
import HalcyonModel
import Kafka
import Redis
import Telemetry

/// Counts the ends of jobs in Redis, after their events were published.
///
/// Counting is fast and may lose ends, if the worker crashes or Redis is away for long. ``BatchAudit`` notices that,
/// and ``BatchRecounter`` counts what the events tell. An end that is counted again counts no more.
final class BatchCounter: Sendable {
    let store: BatchStore
    let producer: Producer
    let topics: Topics
    let metrics: BatchMetrics
    private let options: BatchOptions
    private let log: Log
    private let pending = BatchQueue<BatchEnd>(limit: 100_000)
    private let rings: AsyncStream<Void>
    private let bell: AsyncStream<Void>.Continuation

    /// The delay between attempts while Redis or Kafka is unavailable.
    private static let rest = Duration.milliseconds(500)
    /// The maximum number of ends of one batch that are counted at once.
    private static let step = 512

    init(
        _ store: BatchStore, _ producer: Producer, _ topics: Topics, _ options: BatchOptions, log: Log,
        metrics: BatchMetrics
    ) {
        self.store = store
        self.producer = producer
        self.topics = topics
        self.options = options
        self.log = log
        self.metrics = metrics
        (rings, bell) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Counts an end soon. Does not wait. An end that finds the queue full is left to a recount.
    func add(_ end: BatchEnd) {
        if case .first = pending.enqueue(end) { bell.yield() }
    }

    /// Counts what was added, until ``finish()``.
    func run() async {
        for await _ in rings {
            for (batch, ends) in Dictionary(grouping: pending.drain(), by: \.membership.batch) {
                for first in stride(from: 0, to: ends.count, by: Self.step) {
                    await countPatiently(Array(ends[first..<min(first + Self.step, ends.count)]), of: batch)
                }
            }
        }
    }

    /// Lets ``run()`` return when everything that was added is counted.
    func finish() { bell.finish() }

    private func countPatiently(_ ends: [BatchEnd], of batch: String) async {
        while !Task.isCancelled {
            do {
                return try await count(ends, of: batch)
            } catch {
                log.debug("counting failed; retrying", ["batch": batch, "error": "\(error)"])
            }
            await Task.sleepUnlessCancelled(for: Self.rest)
        }
    }

    /// Tells the coordinator that a batch has all counts.
    func tellCoordinator(of batch: String) async throws(KafkaError) {
        try await producer.send(topics.record(of: BatchMessage(batch, .counted)))
    }

    /// Counts ends, and publishes what follows from the counts.
    private func count(_ ends: [BatchEnd], of batch: String) async throws {
        let progress = try await store.count(ends, of: batch, interval: options.progressInterval)
        metrics.counted.add(ends.count)
        if !progress.isOpened {
            let created = ends.map(\.time).min() ?? Timestamp.now.milliseconds
            try await producer.send(topics.record(of: BatchMessage(batch, .open(created: created))))
        }
        if progress.isDone { try await tellCoordinator(of: batch) }
        if progress.isProgressDue {
            let event = BatchEvent(.progress, of: progress.batch, at: Timestamp.now.milliseconds)
            // Progress is best-effort: the completion has the counts.
            _ = try? await producer.send(EventPublisher.record(of: event, topics))
        }
    }
}

extension BatchEnd {
    /// Reads the end of a job from the record of its terminal event; nil for other records.
    init?(_ record: ConsumedRecord) {
        guard record.headers.contains(where: { $0.name == EventPublisher.batchHeader }), let json = record.value,
            let event = DecodedEvent(json: json), let ending = event.ending, let membership = event.batch,
            let job = event.jobID, let kind = Event.Kind(rawValue: event.type)
        else { return nil }
        self.init(
            membership, job: job, outcome: kind,
            failure: BatchFailure(ending, of: job, membership, event), time: record.timestamp)
    }
}

extension BatchFailure {
    fileprivate init?(
        _ ending: DecodedEvent.Ending, of job: String, _ membership: BatchMembership, _ event: DecodedEvent
    ) {
        guard case .failed(let code, let message) = ending else { return nil }
        let suffix = "-ended"
        self.init(
            job: job, index: membership.index, code: code, message: message,
            record: event.id.hasSuffix(suffix) ? String(event.id.dropLast(suffix.count)) : "")
    }
}

/// The metrics of batches.
struct BatchMetrics: Sendable {
    /// Ends of jobs that were counted, including those that had been counted before.
    let counted: Counter
    /// Batches that were completed.
    let completed: Counter
    /// Recounts of batches.
    let recounted: Counter

    init(_ metrics: Metrics) {
        counted = metrics.counter(
            "halcyon_batch_jobs_counted_total", help: "Ends of jobs of batches that were counted, once or more.")
        completed = metrics.counter("halcyon_batches_completed_total", help: "Batches whose jobs have all ended.")
        recounted = metrics.counter(
            "halcyon_batches_recounted_total",
            help: "Batches that were counted again from the topic of events, because Redis had lost their counts.")
    }
}
