import CivilTime
import HalcyonCluster
import HalcyonModel
import HalcyonWire
import Kafka

/// The last stage: turns outcomes into events and dead letters. Everything that is told about a job is told here.
struct Publish: Sendable {
    let events: EventPublisher
    let deadLetters: DeadLetters

    /// The work for a job begins.
    func started(_ work: Work) async {
        // Not worth waiting or failing for: the terminal event is what counts.
        try? await events.publish(event(.started, work, "started"))
    }

    /// A job has ended.
    /// - Throws: ``KafkaError`` when it cannot be told: the producer is closed.
    func ended(_ work: Work, _ body: Event.Body) async throws(KafkaError) {
        do throws(KafkaError) {
            try await events.publish(event(body, work, "ended"))
        } catch {
            guard error.code == .messageTooLarge else { throw error }
            let failure = Failure(.internal, "the event is larger than Kafka takes: \(error.message)")
            try await events.publish(event(.failed(failure, attempts: 1, timings: Timings()), work, "ended"))
        }
    }

    /// A message is no job that can be done: it goes to the dead letters as it came, and an event says so to whoever waits for its
    /// id. A source that nobody serves is a job all the same, and gets the event alone.
    /// - Throws: ``KafkaError`` when it cannot be told.
    func refused(_ record: ConsumedRecord, _ refusal: JobRefusal) async throws(KafkaError) {
        let origin = RecordOrigin(record)
        let isJob = refusal.failure.code != .invalidJob
        if !isJob { try await deadLetters.bury(record, for: refusal.failure) }
        guard let id = refusal.id ?? (isJob ? origin.coordinates : nil) else { return }
        try await events.publish(
            Event(
                id: "\(origin.coordinates)-ended", time: Timestamp.now.seconds, subject: refusal.source, jobID: id,
                echo: refusal.echo,
                traceparent: record.traceparent, body: .failed(refusal.failure, attempts: 1, timings: Timings())))
    }

    private func event(_ body: Event.Body, _ work: Work, _ suffix: String) -> Event {
        Event(
            id: "\(work.origin.coordinates)-\(suffix)", time: Timestamp.now.seconds, subject: work.job.source.text,
            jobID: work.job.id, echo: work.job.echo, traceparent: work.traceparent, body: body)
    }
}
