import HalcyonCoding
import HalcyonModel
import JSON
import Kafka

/// Submits the jobs of one batch: ``open(tenant:owner:)``, then each job of ``validated(_:index:)``, then
/// ``close(total:)``.
///
/// A submission that was interrupted can be repeated under the same id. Jobs with the same index count once.
public struct BatchWriter: Sendable {
    /// The id of the batch.
    public let id: String
    private let producer: Producer
    private let topics: Topics
    private let reader: JobDecoder
    private let template: JobBuilder

    /// Creates a writer that uses the given producer. The caller owns the producer and closes it.
    /// - Parameters:
    ///   - id: the id of the batch; see `Batch.isID`.
    ///   - producer: the producer.
    ///   - topics: the cluster's topics.
    ///   - reader: the decoder that validates jobs as workers do.
    ///   - template: the fields that all jobs have unless they set them.
    public init(
        _ id: String, _ producer: Producer, topics: Topics, reader: JobDecoder, template: JobBuilder = JobBuilder()
    ) {
        self.id = id
        self.producer = producer
        self.topics = topics
        self.reader = reader
        self.template = template
    }

    /// Announces the batch, before its first job is sent.
    /// - Parameters:
    ///   - created: the time of its creation, in milliseconds since 1970.
    ///   - tenant: the tenant that it belongs to.
    ///   - owner: the name of the API key that creates it.
    /// - Throws: ``KafkaError``.
    public func open(created: Int64, tenant: String? = nil, owner: String? = nil) async throws(KafkaError) {
        try await send(.open(created: created, tenant: tenant, owner: owner))
    }

    /// Validates a job and makes it part of the batch. A job without an id is named after the batch and its index.
    /// - Throws: ``InvalidJobError``.
    public func validated(_ job: JobBuilder, index: Int) throws(InvalidJobError) -> ValidatedJob {
        guard job["batch"] == nil else {
            throw reader.refuse(
                job.json, for: JobError(.invalidJob, "batch: jobs of a batch are numbered; remove this field"))
        }
        guard index <= Batch.highestIndex else {
            throw reader.refuse(
                job.json, for: JobError(.invalidJob, "a batch has at most \(Batch.highestIndex + 1) jobs"))
        }
        var draft = template.overlaid(by: job)
        let name = "\(id)-\(index)"
        if draft["id"] == nil, Job.isID(name) { draft.set("id", name) }
        draft.set("batch", BatchMembership(batch: id, index: index))
        return try ValidatedJob(draft, fallbackID: name, by: reader)
    }

    /// Sends a job that ``validated(_:index:)`` has returned.
    /// - Parameters:
    ///   - job: the job.
    ///   - headers: the headers of its record.
    ///   - latest: the time after which it is not sent any more.
    /// - Throws: ``KafkaError``.
    public func send(
        _ job: ValidatedJob, headers: [RecordHeader] = [], by latest: ContinuousClock.Instant? = nil
    ) async throws(KafkaError) {
        _ = try await producer.send(topics.record(of: job, headers: headers), by: latest)
    }

    /// Tells that the batch has this number of jobs.
    /// - Throws: ``KafkaError``.
    public func close(total: Int) async throws(KafkaError) { try await send(.close(total: total)) }

    /// Cancels the jobs that have not ended.
    /// - Throws: ``KafkaError``.
    public func cancel() async throws(KafkaError) { try await send(.cancel) }

    private func send(_ body: BatchMessage.Body) async throws(KafkaError) {
        try await producer.send(topics.record(of: BatchMessage(id, body)))
    }
}
