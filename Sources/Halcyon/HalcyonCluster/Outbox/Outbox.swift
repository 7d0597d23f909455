import Concurrency
import Kafka
import Telemetry

/// Publishes the events of a job and ends its delivery.
public protocol Outbox: Sendable {
    /// Publishes all of `records` and ends `delivery`, which has begun. Returns when both are durable.
    /// - Throws: ``KafkaError`` if nothing was published and a retry cannot help: a record is too large
    ///   (``KafkaError/Code/messageTooLarge``), the job's partition was revoked
    ///   (``KafkaError/Code/illegalGeneration``), or the connection is closed. The job has not ended in that case.
    func complete(_ delivery: JobDelivery, publishing records: [ProducerRecord]) async throws(KafkaError)

    /// Publishes one record for each of several jobs of one consumer, which have begun, and ends the jobs.
    /// - Returns: the errors in the order of the jobs; nil for a job that has ended.
    func complete(all jobs: [(delivery: JobDelivery, record: ProducerRecord)]) async -> [KafkaError?]
}

extension Outbox {
    /// Completes each of the jobs separately.
    public func complete(all jobs: [(delivery: JobDelivery, record: ProducerRecord)]) async -> [KafkaError?] {
        await withTaskGroup(of: (Int, KafkaError?).self) { group in
            for (index, job) in jobs.enumerated() {
                group.addTask {
                    do throws(KafkaError) {
                        try await complete(job.delivery, publishing: [job.record])
                        return (index, nil)
                    } catch {
                        return (index, error)
                    }
                }
            }
            return await group.reduce(into: Array(repeating: nil, count: jobs.count)) { $0[$1.0] = $1.1 }
        }
    }

    /// Publishes the first of `forms` that is not too large, and ends `delivery`, which has begun.
    ///
    /// Other rejections, such as missing write permission on the topic, can be fixed by an operator. They are retried
    /// until Kafka accepts the records, so that no job is left without a terminal event.
    /// - Parameters:
    ///   - forms: at least one list of records, the preferred one first.
    ///   - refusals: the log of rejections, which is notified while Kafka rejects all forms.
    /// - Returns: the number of the form that was published, from 0.
    /// - Throws: ``KafkaError`` if the job's partition was revoked (``KafkaError/Code/illegalGeneration``), or the
    ///   connection is closed. The job has not ended in that case.
    @discardableResult
    public func complete(
        _ delivery: JobDelivery, publishingOneOf forms: some Collection<[ProducerRecord]>, _ refusals: Refusals
    ) async throws(KafkaError) -> Int {
        var (backoff, isRefused) = (Backoff.kafka, false)
        defer { if isRefused { refusals.end() } }
        while true {
            var refusal: KafkaError?
            for (number, records) in forms.enumerated() {
                do throws(KafkaError) {
                    try await complete(delivery, publishing: records)
                    return number
                } catch {
                    guard error.isRefusal else { throw error }
                    refusal = error
                    if error.code != .messageTooLarge { break }
                }
            }
            if let refusal, !isRefused {
                isRefused = true
                refusals.begin(refusal, of: forms.first?.map(\.topic) ?? [])
            }
            await Task.sleepUnlessCancelled(for: backoff.next())
            guard delivery.claim() else {
                throw KafkaError(code: .illegalGeneration, message: "the job's partition was revoked")
            }
        }
    }
}

extension Backoff {
    /// The delays between attempts while brokers are unavailable or reject records.
    static let kafka = Backoff(initial: .milliseconds(20), maximum: .seconds(1))
}

extension KafkaError {
    /// True if Kafka was reachable and rejected the records.
    fileprivate var isRefusal: Bool {
        !isFatal && ![.closed, .illegalGeneration, .purgedFromQueue, .purgedInFlight].contains(code)
    }
}

/// An at-least-once outbox, which ends a job when the brokers have acknowledged its events. If a worker crashes in
/// between, another worker repeats the job and publishes its events again, with the same ids.
public struct AcknowledgedOutbox: Outbox {
    private let producer: Producer

    /// Creates an outbox that uses the given producer. The caller owns the producer and closes it.
    public init(_ producer: Producer) { self.producer = producer }

    /// Sends the records one after the other, and retries while the brokers are unavailable.
    public func complete(_ delivery: JobDelivery, publishing records: [ProducerRecord]) async throws(KafkaError) {
        for record in records { try await producer.sendWithRetry(record) }
        delivery.acknowledge()
    }

    /// Sends all records together.
    public func complete(all jobs: [(delivery: JobDelivery, record: ProducerRecord)]) async -> [KafkaError?] {
        let errors = await producer.send(all: jobs.map(\.record))
        JobDelivery.acknowledge(zip(jobs, errors).filter { $0.1 == nil }.map(\.0.delivery))
        return errors
    }
}

/// The records that Kafka rejects at present: events and dead letters that wait until an operator has fixed their
/// topic.
public final class Refusals: Sendable {
    private struct State {
        var count = 0
        var since: ContinuousClock.Instant?
    }

    private let log: Log
    private let state = Lock(State())

    /// Creates an instance without rejections.
    public init(log: Log) { self.log = log }

    /// The time since which Kafka has rejected records without interruption; nil if it rejects none.
    public var since: ContinuousClock.Instant? { state.withLock { $0.since } }

    func begin(_ error: KafkaError, of topics: [String]) {
        let isFirst = state.withLock { state in
            state.count += 1
            if state.count == 1 { state.since = .now }
            return state.count == 1
        }
        guard isFirst else { return }
        log.error(
            "Kafka rejects events; retrying until it accepts them",
            ["error": "\(error)", "topics": Set(topics).sorted().joined(separator: ", ")])
    }

    func end() {
        let isLast = state.withLock { state in
            state.count -= 1
            if state.count == 0 { state.since = nil }
            return state.count == 0
        }
        if isLast { log.notice("Kafka accepts events again") }
    }
}
