import Formats
import HalcyonCluster
import HalcyonCoding
import HalcyonModel
import HalcyonResults
import Kafka
import Telemetry

/// Publishes outcomes as events, retries and dead letters. All messages about jobs are published here.
struct PublishStage: Sendable {
    let events: EventPublisher
    let outbox: any Outbox
    let refusals: Refusals
    let topics: Topics
    /// The options of the result store, whose public URLs events name; nil without a store.
    let resultStore: ResultStoreOptions?
    /// The log and counter of failed `started` events, which are not retried.
    let errors: ToleratedErrors
    let log: Log

    /// Publishes that work on a job has started.
    func started(_ job: JobContext) async {
        // Failures are tolerated, because only the terminal event must arrive.
        await errors.tolerating { try await events.publish(event(.started, job, "started")) }
    }

    /// Publishes the progress of an attempt.
    ///
    /// It is sent by the non-transactional producer, like `started`. With exactly-once delivery it therefore does not
    /// wait for a commit and is not aborted with other jobs, and the transaction does not wait for it. It still
    /// precedes the terminal event in the partition, because the job waits for its acknowledgement before it ends.
    func progress(_ progress: LoadProgress, _ attempt: Int, _ job: JobContext) async {
        let suffix = "progress-\(attempt)-\(job.nextProgressNumber())"
        // A postponed attempt has the same number when its job returns in another record.
        await events.offer(event(.progress(progress, attempt: attempt), job, suffix, of: job.retry?.coordinates))
    }

    /// Publishes the outcome of a job.
    /// - Returns: The outcome that was published. A job that its retry topic or delay topic rejects is given up, one
    ///   whose results exceed Kafka's message size limit has failed, and one whose dead letter is lost has ended.
    /// - Throws: ``KafkaError`` if this worker cannot publish the outcome, because the producer is closed or the
    ///   partition was revoked.
    func publish(_ outcome: Outcome, of job: JobContext, _ delivery: JobDelivery) async throws(KafkaError) -> Outcome {
        switch outcome {
        case .handedBack: break
        case .ended(let body):
            return .ended(try await complete(delivery, event(body, job, "ended")).event?.body ?? body)
        case .gaveUp(let failed, let reason): return try await giveUp(job, failed, reason, delivery)
        case .scheduled(let topic, let seconds):
            let history = AttemptHistory(began: Timestamp.now.milliseconds)
            do throws(KafkaError) {
                try await postpone(job, history, to: topics.delays[topic], after: seconds, delivery)
            } catch {
                let failure = JobError(
                    .internal, "cannot wait for its start, because it cannot be written to \(topics.delays[topic])",
                    cause: error)
                let failed = FailedJob(failure: failure, history: history, timings: Timings())
                return try await giveUp(job, failed, .attempts, delivery)
            }
        case .postponed(let failed, let topic, let seconds):
            do throws(KafkaError) {
                try await postpone(job, failed.history, to: topics.retries[topic], after: seconds, delivery)
            } catch {
                // The message may be too large with its headers, or the topic may not exist.
                return try await giveUp(job, failed, .attempts, delivery)
            }
        }
        return outcome
    }

    /// Publishes the events of jobs whose results are cached, and completes those that Kafka accepts.
    /// - Returns: The errors, in the order of the jobs. An error is nil if the job has ended.
    func publish(_ hits: [CachedJob]) async -> [KafkaError?] {
        await outbox.complete(
            all: hits.map { hit in
                (hit.delivery, EventPublisher.record(of: event(.ready(hit.ready), hit.job, "ended"), topics))
            })
    }

    /// Returns the topic to which an outcome is published.
    func destination(of outcome: Outcome) -> String {
        switch outcome {
        case .postponed(_, let topic, _): topics.retries[topic]
        case .scheduled(let topic, _): topics.delays[topic]
        case .ended, .gaveUp, .handedBack: topics.events
        }
    }

    /// Publishes a permanent failure, with a dead letter if it may be replayed.
    /// - Returns: The outcome. A job whose dead letter is lost has just ended.
    private func giveUp(
        _ job: JobContext, _ failed: FailedJob, _ reason: RetryExhaustedReason, _ delivery: JobDelivery
    ) async throws(KafkaError) -> Outcome {
        let letter =
            failed.isPutAside(reason)
            ? DeadLetter.record(
                of: delivery.record, from: job.origin, for: failed.failure, after: failed.history, reason, topics) : nil
        let published = try await complete(delivery, event(failed.body, job, "ended"), letter)
        return letter != nil && published.letter == nil ? .ended(failed.body) : .gaveUp(failed, reason)
    }

    /// Publishes a job to a retry topic or delay topic, to be received by any worker.
    private func postpone(
        _ job: JobContext, _ history: AttemptHistory, to topic: String, after seconds: Double, _ delivery: JobDelivery
    ) async throws(KafkaError) {
        let message = RetryMessage(
            provenance: job.origin, history: history, after: seconds, hasStarted: job.hasStarted, uploads: job.uploads)
        var record = message.record(of: delivery.record, to: topic)
        if let trace = job.trace, !record.headers.contains(where: { $0.name == "traceparent" }) {
            // The next attempt is a child span of this one. A trace context from the producer is passed on unchanged.
            record.headers.append(RecordHeader("traceparent", trace.context.traceparent))
        }
        try await outbox.complete(delivery, publishing: [record])
    }

    /// Rejects a message that does not contain a valid job. The message goes to the dead-letter topic unchanged, and an
    /// event reports the failure to clients that wait for its id. A job whose source no provider serves is valid and
    /// gets only the event.
    /// - Returns: The record that first contained the message.
    /// - Throws: ``KafkaError`` if it cannot be published.
    func reject(
        _ delivery: JobDelivery, _ refusal: InvalidJobError, _ trace: JobTrace?
    ) async throws(KafkaError) -> OriginalRecord {
        let record = delivery.record
        guard record.refreshID == nil else {
            // The preset of the job was deleted a moment ago. Its results expire.
            try await complete(delivery, nil)
            return OriginalRecord(record)
        }
        // A postponed job keeps its original coordinates, unless the retry headers are invalid.
        let retry = topics.lanes.contains(record.topic) ? nil : try? RetryMessage(record)
        let origin = retry?.provenance ?? OriginalRecord(record)
        let isJob = refusal.failure.code != .invalidJob
        let letter =
            isJob
            ? nil
            : DeadLetter.record(
                of: record, from: origin, for: refusal.failure, after: retry?.history, nil, topics)
        let id = refusal.id ?? (isJob || refusal.batch != nil ? origin.coordinates : nil)
        let event = id.map {
            Event(
                id: "\(origin.coordinates)-ended", time: Timestamp.now.seconds, subject: refusal.source, jobID: $0,
                batch: refusal.batch, echo: refusal.echo, traceparent: trace?.context.traceparent ?? record.traceparent,
                webhook: refusal.webhook,
                body: .failed(refusal.failure, attempts: (retry?.history.count ?? 0) + 1, timings: Timings()))
        }
        try await complete(delivery, event, letter)
        return origin
    }

    /// Publishes the event and the dead letter, shortened as far as necessary for Kafka to accept them. A dead letter
    /// whose key and headers alone are too large is lost. No job is left without a final event because of its size.
    /// - Returns: The event and the dead letter as they were published.
    @discardableResult
    private func complete(
        _ delivery: JobDelivery, _ event: Event?, _ letter: ProducerRecord? = nil
    ) async throws(KafkaError) -> PublishedForm {
        let letters: [ProducerRecord?] = letter.map { [$0, DeadLetter.shortened($0), nil] } ?? [nil]
        let events: [Event?] = event.map { [$0, $0.shortened] } ?? [nil]
        let forms: [PublishedForm] = letters.flatMap { letter in events.map { (event: $0, letter: letter) } }
        let published = try await outbox.complete(
            delivery,
            publishingOneOf: forms.lazy.map { [topics] event, letter in
                [letter, event.map { EventPublisher.record(of: $0, topics) }].compactMap(\.self)
            }, refusals)
        let form = forms[published]
        if letter != nil, form.letter == nil {
            log.warning(
                "dead letter not written: its key and headers exceed Kafka's message size limit",
                [
                    "job": event?.jobID, "source": event?.subject?.loggedURL,
                    "record": OriginalRecord(delivery.record).coordinates,
                ])
        }
        return form
    }

    /// An event and a dead letter that are published together; nil for none.
    private typealias PublishedForm = (event: Event?, letter: ProducerRecord?)

    /// Creates an event of a job.
    /// - Parameter record: The coordinates in the id of the event; nil for those of the record that first contained the
    ///   job.
    private func event(
        _ body: Event.Body, _ job: JobContext, _ suffix: String, of record: String? = nil
    ) -> Event {
        var body = body
        if case .ready(var ready) = body, resultStore?.publicURL != nil, job.job.cache.store != .excluded {
            for place in ready.results.indices { ready.results[place].url = publicURL(of: ready.results[place], job) }
            body = .ready(ready)
        }
        return Event(
            id: "\(record ?? job.origin.coordinates)-\(suffix)", time: Timestamp.now.seconds,
            subject: job.job.source.shownText, jobID: job.job.id, batch: job.job.batch, echo: job.job.echo,
            preset: job.job.preset,
            // Consumers continue the trace as children of the job, if it is recorded.
            traceparent: job.trace?.context.traceparent ?? job.traceparent,
            warnings: body.kind.isTerminal ? job.warnings : [], webhook: job.job.webhook, body: body)
    }

    /// The public URL of a result; nil if it is not stored.
    private func publicURL(of result: ImageResult, _ job: JobContext) -> String? {
        guard result.expiresAt != nil, let key = ResultKey(result.key), let used = job.context(of: key) else {
            return nil
        }
        return resultStore?.publicURL(of: key, result.facts, from: used.job.source)
    }
}

extension Event {
    /// The event without its large parts: the source text, the job's metadata, warnings, and images.
    fileprivate var shortened: Event {
        var event = self
        event.subject = subject.map(JobError.shortened)
        event.echo = Job.PassthroughMetadata()
        event.warnings = []
        if case .ready = body {
            event.body = .failed(
                JobError(.internal, "the event exceeds Kafka's message size limit"), attempts: body.attempts,
                timings: Timings()
            )
        }
        return event
    }
}

extension Event.Body {
    /// The number of attempts.
    fileprivate var attempts: Int {
        switch self {
        case .ready(let ready): ready.attempts
        case .failed(_, let attempts, _): attempts
        case .progress(_, let attempt): attempt
        case .started, .cancelled, .superseded, .purged: 1
        }
    }
}
