import Kafka
import Telemetry
import Threads

/// Where a job ends: what is told of it goes to Kafka, and then its offset may be passed.
public protocol Outbox: Sendable {
    /// Tells all of `records` and ends `taken`, which has begun. Returns when both are sure.
    /// - Throws: ``KafkaError`` when nothing was told and waiting cannot help: a record is too large
    ///   (``KafkaError/Code/messageTooLarge``), the job's partition has gone, and with it the job to another worker
    ///   (``KafkaError/Code/illegalGeneration``), or the worker's connection is closed. The job has not ended then.
    func settle(_ taken: TakenRecord, telling records: [ProducerRecord]) async throws(KafkaError)

    /// Tells one record for each of several jobs of one consumer, which have begun, and ends them.
    /// - Returns: the errors, in the order of the jobs; nil for a job that has ended.
    func settle(all jobs: [(taken: TakenRecord, record: ProducerRecord)]) async -> [KafkaError?]
}

extension Outbox {
    /// Settles each of the jobs by itself.
    public func settle(all jobs: [(taken: TakenRecord, record: ProducerRecord)]) async -> [KafkaError?] {
        await withTaskGroup(of: (Int, KafkaError?).self) { group in
            for (index, job) in jobs.enumerated() {
                group.addTask {
                    do throws(KafkaError) {
                        try await settle(job.taken, telling: [job.record])
                        return (index, nil)
                    } catch {
                        return (index, error)
                    }
                }
            }
            return await group.reduce(into: Array(repeating: nil, count: jobs.count)) { $0[$1.0] = $1.1 }
        }
    }

    /// Tells one of `forms`, the first that is not too large, and ends `taken`, which has begun.
    ///
    /// What Kafka refuses for another reason, such as the right to write to the topic, an operator can mend: it is tried again until
    /// Kafka takes it, so that no job is left without an end.
    /// - Parameters:
    ///   - forms: at least one; each shorter than the one before.
    ///   - refusals: told for as long as Kafka refuses them all.
    /// - Throws: ``KafkaError`` when the job's partition has gone (``KafkaError/Code/illegalGeneration``), or the worker's connection is
    ///   closed. The job has not ended then.
    public func settle(
        _ taken: TakenRecord, tellingOneOf forms: some Collection<[ProducerRecord]>, _ refusals: Refusals
    ) async throws(KafkaError) {
        var (backoff, isRefused) = (Backoff.kafka, false)
        defer { if isRefused { refusals.end() } }
        while true {
            var refusal: KafkaError?
            for records in forms {
                do throws(KafkaError) {
                    return try await settle(taken, telling: records)
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
            guard taken.begin() else {
                throw KafkaError(code: .illegalGeneration, message: "the job's partition has gone to another worker")
            }
        }
    }
}

extension Backoff {
    /// Between attempts while brokers are away or refuse what is sent.
    static let kafka = Backoff(initial: .milliseconds(20), maximum: .seconds(1))
}

extension KafkaError {
    /// Whether Kafka was there, and did not take what was sent.
    fileprivate var isRefusal: Bool {
        !isFatal && ![.closed, .illegalGeneration, .purgedFromQueue, .purgedInFlight].contains(code)
    }
}

/// At least once: a job ends when the brokers have acknowledged what is told of it. A worker that dies in between leaves its job to
/// another, and it is told twice, under the same event id.
public struct AcknowledgedOutbox: Outbox {
    private let producer: Producer

    /// The producer stays its maker's, who closes it.
    public init(_ producer: Producer) { self.producer = producer }

    /// Sends one record after the other, for as long as the brokers are away.
    public func settle(_ taken: TakenRecord, telling records: [ProducerRecord]) async throws(KafkaError) {
        for record in records { try await producer.sendPatiently(record) }
        taken.end()
    }

    /// Sends all records together.
    public func settle(all jobs: [(taken: TakenRecord, record: ProducerRecord)]) async -> [KafkaError?] {
        let errors = await producer.send(all: jobs.map(\.record))
        TakenRecord.end(zip(jobs, errors).filter { $0.1 == nil }.map(\.0.taken))
        return errors
    }
}

/// The records that Kafka refuses at present: events and dead letters that wait until an operator has mended what is wrong with their topic.
public final class Refusals: Sendable {
    private struct State {
        var count = 0
        var since: ContinuousClock.Instant?
    }

    private let log: Log
    private let state = Lock(State())

    /// None so far.
    public init(log: Log) { self.log = log }

    /// Since when Kafka has refused records without a break; nil while it refuses none.
    public var since: ContinuousClock.Instant? { state.withLock { $0.since } }

    func begin(_ error: KafkaError, of topics: [String]) {
        let isFirst = state.withLock { state in
            state.count += 1
            if state.count == 1 { state.since = .now }
            return state.count == 1
        }
        guard isFirst else { return }
        log.error(
            "Kafka refuses events; their jobs wait until it takes them",
            ["error": "\(error)", "topics": Set(topics).sorted().joined(separator: ", ")])
    }

    func end() {
        let isLast = state.withLock { state in
            state.count -= 1
            if state.count == 0 { state.since = nil }
            return state.count == 0
        }
        if isLast { log.notice("Kafka refuses no events any more") }
    }
}
