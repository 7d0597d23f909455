import CivilTime
import HalcyonCluster
import HalcyonModel
import HalcyonWire
import Kafka

/// The last stage: turns outcomes into events, retries and dead letters. Everything that is told about a job is told here.
struct Publish: Sendable {
    let events: EventPublisher
    let outbox: any Outbox
    let refusals: Refusals
    let topics: Topics

    /// The work for a job begins.
    func started(_ work: Work) async {
        // Not worth waiting or failing for: the terminal event is what counts.
        try? await events.publish(event(.started, work, "started"))
    }

    /// Sends progress event `number` of this attempt.
    ///
    /// It is sent by the non-transactional producer, like `started`. With exactly-once delivery it therefore does not wait for a commit and is not
    /// aborted with other jobs, and the transaction does not wait for it. It still precedes the terminal event in the partition, because the job
    /// waits for its acknowledgement before it ends.
    func progress(_ progress: LoadProgress, _ attempt: Int, _ number: Int, _ work: Work) async {
        await events.offer(event(.progress(progress, attempt: attempt), work, "progress-\(attempt)-\(number)"))
    }

    /// Tells what comes of a job.
    /// - Returns: what was told: a job that its topic does not take is given up.
    /// - Throws: ``KafkaError`` when it is not to be told here: the producer is closed, or the job's partition has gone.
    func tell(_ work: Work, _ outcome: Outcome, _ taken: TakenRecord) async throws(KafkaError) -> Outcome {
        switch outcome {
        case .handedBack: break
        case .ended(let body): try await end(work, body, taken)
        case .gaveUp(let failed, let reason): try await giveUp(work, failed, reason, taken)
        case .postponed(let failed, let topic, let seconds):
            do throws(KafkaError) {
                try await postpone(work, failed.history, to: topics.retries[topic], after: seconds, taken)
            } catch {
                // The message may be too large with its headers, or the topic not be there.
                try await giveUp(work, failed, .attempts, taken)
                return .gaveUp(failed, .attempts)
            }
        }
        return outcome
    }

    /// The topic that says what comes of a job.
    func destination(of outcome: Outcome) -> String {
        if case .postponed(_, let topic, _) = outcome { topics.retries[topic] } else { topics.events }
    }

    /// A job ends.
    /// - Parameter letter: what is put aside of it, if anything.
    private func end(
        _ work: Work, _ body: Event.Body, _ taken: TakenRecord, putAside letter: ProducerRecord? = nil
    ) async throws(KafkaError) {
        try await settle(taken, event(body, work, "ended"), letter)
    }

    /// A job failed for good. What may be wanted later is put aside.
    private func giveUp(
        _ work: Work, _ failed: FailedJob, _ reason: GivingUp, _ taken: TakenRecord
    ) async throws(KafkaError) {
        let letter =
            failed.isPutAside(reason)
            ? DeadLetter.record(
                of: taken.record, from: work.origin, for: failed.failure, after: failed.history, reason, topics) : nil
        try await end(work, failed.body, taken, putAside: letter)
    }

    /// A job is to be tried again, by whichever worker.
    private func postpone(
        _ work: Work, _ history: AttemptHistory, to topic: String, after seconds: Double, _ taken: TakenRecord
    ) async throws(KafkaError) {
        let message = RetryMessage(
            provenance: work.origin, history: history, after: seconds, hasStarted: work.hasStarted)
        var record = message.record(of: taken.record, to: topic)
        if let trace = work.trace, !record.headers.contains(where: { $0.name == "traceparent" }) {
            // The next attempt stands below this one. A trace that its producer began is every attempt's as it is.
            record.headers.append(RecordHeader("traceparent", trace.context.traceparent))
        }
        try await outbox.settle(taken, telling: [record])
    }

    /// A message is no job that can be done: it goes to the dead letters as it came, and an event says so to whoever waits for its
    /// id. A source that nobody serves is a job all the same, and gets the event alone.
    /// - Throws: ``KafkaError`` when it cannot be told.
    func refused(
        _ taken: TakenRecord, _ refusal: JobRefusal, _ trace: JobTrace?
    ) async throws(KafkaError) {
        let record = taken.record
        // A job that was good when it was postponed is known by the same name.
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
        try await settle(taken, event, letter)
    }

    /// Tells both, each as short as it must be for Kafka to take it: no job is left without an end because of its size.
    private func settle(
        _ taken: TakenRecord, _ event: Event?, _ letter: ProducerRecord? = nil
    ) async throws(KafkaError) {
        var forms = [(event, letter)]
        if let letter { forms.append((event, DeadLetter.shortened(letter))) }
        if let event { forms.append((event.shortened, letter.map(DeadLetter.shortened))) }
        try await outbox.settle(
            taken,
            tellingOneOf: forms.lazy.map { [topics] event, letter in
                [letter, event.map { EventPublisher.record(of: $0, topics) }].compactMap(\.self)
            }, refusals)
    }

    private func event(_ body: Event.Body, _ work: Work, _ suffix: String) -> Event {
        Event(
            id: "\(work.origin.coordinates)-\(suffix)", time: Timestamp.now.seconds, subject: work.job.source.shownText,
            jobID: work.job.id, echo: work.job.echo,
            // Who hears of it goes on below the job, where that is recorded.
            traceparent: work.trace?.context.traceparent ?? work.traceparent, webhook: work.job.webhook, body: body)
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
