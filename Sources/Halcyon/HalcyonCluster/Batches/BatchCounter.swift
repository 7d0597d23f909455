import Concurrency
import Formats
import HalcyonCoding
import HalcyonModel
import Kafka
import Redis
import Telemetry

/// Counts the ends of jobs in Redis, as the committed events tell them. An event that is read again counts no more.
struct BatchCounter: Sendable {
    let store: BatchStore
    let producer: Producer
    let topics: Topics
    let options: BatchOptions
    let log: Log
    let metrics: BatchMetrics

    /// The delay between attempts while Redis or Kafka is unavailable.
    private static let rest = Duration.milliseconds(500)

    /// Counts events. Returns when all of them are acknowledged or returned to the queue.
    func count(_ deliveries: [JobDelivery]) async {
        var batches: [String: [(delivery: JobDelivery, end: BatchEnd)]] = [:]
        var others: [JobDelivery] = []
        for (delivery, isOurs) in zip(deliveries, JobDelivery.claim(deliveries)) {
            if !isOurs {
                delivery.returnToQueue()
            } else if let end = BatchEnd(delivery.record) {
                batches[end.membership.batch, default: []].append((delivery, end))
            } else {
                others.append(delivery)
            }
        }
        JobDelivery.acknowledge(others)
        for (batch, ends) in batches { await count(ends, of: batch) }
    }

    private func count(_ ends: [(delivery: JobDelivery, end: BatchEnd)], of batch: String) async {
        var left = ends
        while !left.isEmpty {
            do {
                try await count(left.map(\.end), of: batch)
                JobDelivery.acknowledge(left.map(\.delivery))
                metrics.counted.add(left.count)
                return
            } catch {
                log.debug("counting failed; retrying", ["batch": batch, "error": "\(error)"])
            }
            left = left.filter { $0.delivery.releaseOrReturn() }
            await Task.sleepUnlessCancelled(for: Self.rest)
            left = left.filter { $0.delivery.claimOrReturn() }
        }
    }

    /// Counts ends, and publishes what follows from the counts.
    /// - Throws: ``RedisError``, ``KafkaError``.
    func count(_ ends: [BatchEnd], of batch: String) async throws {
        let progress = try await store.count(ends, of: batch, interval: options.progressInterval)
        if !progress.isOpened {
            let created = ends.map(\.time).min() ?? Timestamp.now.milliseconds
            try await producer.send(topics.record(of: BatchMessage(batch, .open(created: created))))
        }
        if progress.isDone { try await producer.send(topics.record(of: BatchMessage(batch, .counted))) }
        if progress.isProgressDue {
            let event = BatchEvent(.progress, of: progress.batch, at: Timestamp.now.milliseconds)
            // Progress is best-effort: the completion has the counts.
            _ = try? await producer.send(EventPublisher.record(of: event, topics))
        }
    }
}

extension JobDelivery {
    /// Claims the delivery, or returns it to the queue if it was revoked.
    func claimOrReturn() -> Bool {
        if claim() { return true }
        returnToQueue()
        return false
    }

    /// Releases the delivery, or returns it to the queue if it was revoked.
    func releaseOrReturn() -> Bool {
        if release() { return true }
        returnToQueue()
        return false
    }
}

extension BatchEnd {
    /// Reads the end of a job from the record of its terminal event; nil for other records.
    init?(_ record: ConsumedRecord) {
        guard record.headers.contains(where: { $0.name == EventPublisher.batchHeader }), let json = record.value,
            let event = DecodedEvent(json: json), let ending = event.ending, let membership = event.batch,
            let job = event.jobID
        else { return nil }
        self.init(
            membership: membership, job: job, outcome: event.type,
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
            job: job, index: membership.index, code: code, message: String(message.prefix(500)),
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
            "halcyon_batch_jobs_counted_total", help: "Ends of jobs of batches that were read from the topic of events."
        )
        completed = metrics.counter("halcyon_batches_completed_total", help: "Batches whose jobs have all ended.")
        recounted = metrics.counter(
            "halcyon_batches_recounted_total",
            help: "Batches that were counted again from the topic of events, because Redis had lost their counts.")
    }
}
