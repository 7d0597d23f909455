import Formats
import HalcyonCluster
import HalcyonModel
import HalcyonWire
import Kafka
import Telemetry

/// Publishes outcomes as events, retries and dead letters. Everything that is published about a job is published here.
struct PublishStage: Sendable {
    let events: EventPublisher
    let outbox: any Outbox
    let refusals: Refusals
    let topics: Topics
    /// Those of events that nobody waits for.
    let errors: ToleratedErrors

    /// The work for a job begins.
    func started(_ job: JobContext) async {
        // Not worth waiting or failing for: the terminal event is what counts.
        await errors.tolerating { try await events.publish(event(.started, job, "started")) }
    }

    /// Sends progress event `number` of this attempt.
    ///
    /// It is sent by the non-transactional producer, like `started`. With exactly-once delivery it therefore does not wait for a commit and is not
    /// aborted with other jobs, and the transaction does not wait for it. It still precedes the terminal event in the partition, because the job
    /// waits for its acknowledgement before it ends.
    func progress(_ progress: LoadProgress, _ attempt: Int, _ number: Int, _ job: JobContext) async {
        await events.offer(event(.progress(progress, attempt: attempt), job, "progress-\(attempt)-\(number)"))
    }

    /// Tells what comes of a job.
    /// - Returns: what was told: a job that its topic does not take is given up.
    /// - Throws: ``KafkaError`` when it is not to be told here: the producer is closed, or the job's partition has gone.
    func publish(_ outcome: Outcome, of job: JobContext, _ delivery: TakenRecord) async throws(KafkaError) -> Outcome {
        switch outcome {
        case .handedBack: break
        case .ended(let body): try await end(job, body, delivery)
        case .gaveUp(let failed, let reason): try await giveUp(job, failed, reason, delivery)
        case .postponed(let failed, let topic, let seconds):
            do throws(KafkaError) {
                try await postpone(job, failed.history, to: topics.retries[topic], after: seconds, delivery)
            } catch {
                // The message may be too large with its headers, or the topic not be there.
                try await giveUp(job, failed, .attempts, delivery)
                return .gaveUp(failed, .attempts)
            }
        }
        return outcome
    }

    /// Publishes the events of jobs whose results are cached, and ends those that Kafka takes.
    /// - Returns: the errors, in the order of the jobs; nil for a job that has ended.
    func publish(_ hits: [CachedJob]) async -> [KafkaError?] {
        await outbox.settle(
            all: hits.map { hit in
                (hit.delivery, EventPublisher.record(of: event(.ready(hit.ready), hit.job, "ended"), topics))
            })
    }

    /// The topic that says what comes of a job.
    func destination(of outcome: Outcome) -> String {
        if case .postponed(_, let topic, _) = outcome { topics.retries[topic] } else { topics.events }
    }

    /// A job ends.
    /// - Parameter letter: what is put aside of it, if anything.
    private func end(
        _ job: JobContext, _ body: Event.Body, _ delivery: TakenRecord, putAside letter: ProducerRecord? = nil
    ) async throws(KafkaError) {
        try await settle(delivery, event(body, job, "ended"), letter)
    }

    /// A job failed for good. What may be wanted later is put aside.
    private func giveUp(
        _ job: JobContext, _ failed: FailedJob, _ reason: GivingUp, _ delivery: TakenRecord
    ) async throws(KafkaError) {
        let letter =
            failed.isPutAside(reason)
            ? DeadLetter.record(
                of: delivery.record, from: job.origin, for: failed.failure, after: failed.history, reason, topics) : nil
        try await end(job, failed.body, delivery, putAside: letter)
    }

    /// A job is to be tried again, by whichever worker.
    private func postpone(
        _ job: JobContext, _ history: AttemptHistory, to topic: String, after seconds: Double, _ delivery: TakenRecord
    ) async throws(KafkaError) {
        let message = RetryMessage(
            provenance: job.origin, history: history, after: seconds, hasStarted: job.hasStarted)
        var record = message.record(of: delivery.record, to: topic)
        if let trace = job.trace, !record.headers.contains(where: { $0.name == "traceparent" }) {
            // The next attempt stands below this one. A trace that its producer began is every attempt's as it is.
            record.headers.append(RecordHeader("traceparent", trace.context.traceparent))
        }
        try await outbox.settle(delivery, telling: [record])
    }

    /// A message is no job that can be done: it goes to the dead letters as it came, and an event says so to whoever waits for its
    /// id. A source that nobody serves is a job all the same, and gets the event alone.
    /// - Throws: ``KafkaError`` when it cannot be told.
    func reject(
        _ delivery: TakenRecord, _ refusal: JobRefusal, _ trace: JobTrace?
    ) async throws(KafkaError) {
        let record = delivery.record
        // A job that was good when it was postponed is known by the same name, unless its headers do not say it.
        let retry = topics.retries.contains(record.topic) ? try? RetryMessage(record) : nil
        let origin = retry?.provenance ?? Provenance(record)
        let isJob = refusal.failure.code != .invalidJob
        let letter =
            isJob
            ? nil
            : DeadLetter.record(
                of: record, from: origin, for: refusal.failure, after: retry?.history, nil, topics)
        let id = refusal.id ?? (isJob ? origin.coordinates : nil)
        let event = id.map {
            Event(
                id: "\(origin.coordinates)-ended", time: Timestamp.now.seconds, subject: refusal.source, jobID: $0,
                echo: refusal.echo, traceparent: trace?.context.traceparent ?? record.traceparent,
                webhook: refusal.webhook,
                body: .failed(refusal.failure, attempts: (retry?.history.count ?? 0) + 1, timings: Timings()))
        }
        try await settle(delivery, event, letter)
    }

    /// Tells both, each as short as it must be for Kafka to take it: no job is left without an end because of its size.
    private func settle(
        _ delivery: TakenRecord, _ event: Event?, _ letter: ProducerRecord? = nil
    ) async throws(KafkaError) {
        var forms = [(event, letter)]
        if let letter { forms.append((event, DeadLetter.shortened(letter))) }
        if let event { forms.append((event.shortened, letter.map(DeadLetter.shortened))) }
        try await outbox.settle(
            delivery,
            tellingOneOf: forms.lazy.map { [topics] event, letter in
                [letter, event.map { EventPublisher.record(of: $0, topics) }].compactMap(\.self)
            }, refusals)
    }

    private func event(_ body: Event.Body, _ job: JobContext, _ suffix: String) -> Event {
        Event(
            id: "\(job.origin.coordinates)-\(suffix)", time: Timestamp.now.seconds, subject: job.job.source.shownText,
            jobID: job.job.id, echo: job.job.echo,
            // Who hears of it goes on below the job, where that is recorded.
            traceparent: job.trace?.context.traceparent ?? job.traceparent, webhook: job.job.webhook, body: body)
    }
}

extension Event {
    /// The event without what may be large: a source's text, the job's own values, and images.
    fileprivate var shortened: Event {
        var event = self
        event.subject = subject.map(Failure.shortened)
        event.echo = Job.Echo()
        if case .ready = body {
            event.body = .failed(
                Failure(.internal, "the event is larger than Kafka takes"), attempts: body.attempts, timings: Timings())
        }
        return event
    }
}

extension Event.Body {
    /// How often the job was tried.
    fileprivate var attempts: Int {
        switch self {
        case .ready(let ready): ready.attempts
        case .failed(_, let attempts, _): attempts
        case .progress(_, let attempt): attempt
        case .started, .cancelled, .superseded, .purged: 1
        }
    }
}
