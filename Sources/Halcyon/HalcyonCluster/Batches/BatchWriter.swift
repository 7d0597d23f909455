import HalcyonCoding
import HalcyonModel
import Hashing
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

    /// A random id for a batch.
    public static var newID: String { "batch-\(String.randomHexadecimal())" }

    /// Returns a random id for a batch of the jobs of another one that failed.
    public static func retryID(of batch: String) -> String {
        "\(batch.prefix(100))-retry-\(String.randomHexadecimal().prefix(8))"
    }

    /// Announces the batch, before its first job is sent.
    /// - Parameters:
    ///   - created: the time of its creation, in milliseconds since 1970.
    ///   - tenant: the tenant that it belongs to.
    ///   - owner: the name of the API key that creates it.
    ///   - webhook: the webhook to which its completion is delivered.
    /// - Throws: ``KafkaError``.
    public func open(
        created: Int64, tenant: String? = nil, owner: String? = nil, webhook: Webhook? = nil
    ) async throws(KafkaError) {
        try await send(.open(created: created, tenant: tenant, owner: owner, webhook: webhook))
    }

    /// Validates a job and makes it part of the batch. A job without an id is named after the batch and its index.
    /// - Throws: ``InvalidJobError``.
    public func validated(_ job: JobBuilder, index: Int) throws(InvalidJobError) -> ValidatedJob {
        guard job["batch"] == nil, template["batch"] == nil else {
            throw reader.refuse(
                job.json, for: JobError(.invalidJob, "batch: jobs of a batch are numbered; remove this field"))
        }
        guard index <= Batch.highestIndex else {
            throw reader.refuse(
                job.json, for: JobError(.invalidJob, "a batch has at most \(Batch.highestIndex + 1) jobs"))
        }
        return try ValidatedJob(draft(of: job, index: index), fallbackID: name(index), by: reader)
    }

    /// Makes a job part of the batch without validating it.
    func draft(of job: JobBuilder, index: Int) -> JobBuilder {
        var draft = template.overlaid(by: job)
        if draft["id"] == nil, Job.isID(name(index)) { draft.set("id", name(index)) }
        draft.set("batch", BatchMembership(batch: id, index: index))
        return draft
    }

    private func name(_ index: Int) -> String { "\(id)-\(index)" }

    /// Sends a job that ``validated(_:index:)`` has returned.
    /// - Parameters:
    ///   - job: the job.
    ///   - headers: the headers of its record.
    /// - Throws: ``KafkaError``.
    public func send(_ job: ValidatedJob, headers: [RecordHeader] = []) async throws(KafkaError) {
        _ = try await producer.send(topics.record(of: job, headers: headers))
    }

    /// Has a worker list jobs, submit them, and close the batch.
    /// - Throws: ``KafkaError``.
    public func list(_ contents: BatchListing.Contents) async throws(KafkaError) {
        try await send(.list(BatchListing(contents, template: template.json)))
    }

    /// Validates the template with a source that a listed job may have.
    /// - Returns: a job of the batch.
    /// - Throws: ``InvalidJobError``.
    @discardableResult public func check(_ contents: BatchListing.Contents) throws(InvalidJobError) -> ValidatedJob {
        var job = JobBuilder()
        switch contents {
        case .prefix(let url): job.set("source", url + "object")
        case .preset(_, _, let reload):
            // The sources of jobs with this preset are not known here.
            job.set("source", "https://example.org/image")
            if reload { job.set("cache", "reload", true.json) }
        }
        return try validated(job, index: 0)
    }

    /// Returns true if a job with the template belongs to a tenant.
    func isJob(_ job: JobBuilder, of tenant: String) -> Bool {
        reader.isJob(template.overlaid(by: job), of: tenant)
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

/// Reads the original messages of jobs of a batch that failed, so that they can be submitted again.
public struct FailedJobReader: Sendable {
    private let topics: Topics
    private let properties: [String: String]

    /// Creates a reader.
    /// - Parameters:
    ///   - topics: the cluster's topics.
    ///   - properties: the librdkafka properties for reading.
    public init(_ topics: Topics, properties: [String: String]) {
        self.topics = topics
        self.properties = properties
    }

    /// Returns the messages of failed jobs in order, without their batch. Those that Kafka has deleted are left out.
    /// - Throws: ``KafkaError``, `CancellationError`.
    public func jobs(of failures: [BatchFailure]) async throws -> [(failure: BatchFailure, job: JobBuilder)] {
        var wanted: [String: Set<RecordPosition>] = [:]
        for position in failures.compactMap({ RecordPosition($0.record) }) where topics.lanes.contains(position.topic) {
            wanted[position.topic, default: []].insert(position)
        }
        var messages: [String: [UInt8]] = [:]
        for (topic, positions) in wanted { try await read(positions, of: topic, into: &messages) }
        return failures.compactMap { failure in
            // The worker has decoded the message before.
            guard let message = messages[failure.record],
                var job = try? JobBuilder(json: message, maximumSize: message.count)
            else { return nil }
            job["batch"] = nil
            if job["id"] == nil { job.set("id", failure.job) }
            return (failure, job)
        }
    }

    private func read(
        _ positions: Set<RecordPosition>, of topic: String, into messages: inout [String: [UInt8]]
    ) async throws {
        let end = try await TopicReader.open(topic, from: .end, properties: properties)
        var starts = end.endOffsets
        await end.close()
        var left = Dictionary(grouping: positions, by: \.partition).mapValues { $0.map(\.offset).max() ?? 0 }
        for position in positions { starts[position.partition] = min(starts[position.partition] ?? 0, position.offset) }
        let reader = try await TopicReader.open(topic, from: .offsets(starts), properties: properties, tellsEnds: true)
        do {
            while !left.isEmpty {
                guard let batch = try await reader.nextBatch() else { throw CancellationError() }
                for record in batch.records {
                    let position = RecordPosition(
                        topic: topic, partition: record.partition, offset: record.offset)
                    if positions.contains(position) { messages[position.description] = record.value }
                    if let last = left[record.partition], record.offset >= last { left[record.partition] = nil }
                }
                for partition in batch.ends.keys { left[partition] = nil }
            }
        } catch {
            await reader.close()
            throw error
        }
        await reader.close()
    }
}

/// The position of a record: its topic, partition and offset, separated by hyphens.
private struct RecordPosition: Hashable, CustomStringConvertible {
    let topic: String
    let partition: Int32
    let offset: Int64

    init(topic: String, partition: Int32, offset: Int64) {
        self.topic = topic
        self.partition = partition
        self.offset = offset
    }

    init?(_ text: String) {
        let parts = text.split(separator: "-")
        guard parts.count >= 3, let offset = Int64(parts[parts.count - 1]),
            let partition = Int32(parts[parts.count - 2])
        else { return nil }
        self.init(topic: parts.dropLast(2).joined(separator: "-"), partition: partition, offset: offset)
    }

    var description: String { "\(topic)-\(partition)-\(offset)" }
}
