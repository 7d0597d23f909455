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

    /// Returns the jobs of these failures that Kafka has not deleted, in slices.
    /// - Parameter bytes: the size of the messages after which a slice ends.
    public func slices(of failures: [BatchFailure], bytes: Int = FailedJobSlices.defaultBytes) -> FailedJobSlices {
        FailedJobSlices(failures, topics, properties: properties, bytes: bytes)
    }

    /// Returns the jobs of these failures that Kafka has not deleted, all at once, in the order of the failures.
    /// - Throws: ``KafkaError``, `CancellationError`.
    public func jobs(of failures: [BatchFailure]) async throws -> [FailedJob] {
        let slices = slices(of: failures)
        var jobs: [FailedJob] = []
        do {
            while let slice = try await slices.next() { jobs += slice }
        } catch {
            await slices.close()
            throw error
        }
        await slices.close()
        return jobs.sorted { $0.index < $1.index }
    }
}

/// A failed job of a batch that can be submitted again.
public struct FailedJob: Sendable {
    /// The index of the failure in the list that the job was requested with.
    public let index: Int
    /// The failure.
    public let failure: BatchFailure
    /// The message of the job, without its batch.
    public let job: JobBuilder
}

/// Failed jobs of a batch, which are read from their topics as they are requested. Only one slice of them is in memory.
///
/// Only one task may use it. The owner must call ``close()`` at the end.
public actor FailedJobSlices {
    /// The default size of the messages after which a slice ends, in bytes.
    public static let defaultBytes = 8 << 20

    private let failures: [BatchFailure]
    /// The index of the failure of each record.
    private let indices: [RecordPosition: Int]
    private let properties: [String: String]
    private let bytes: Int
    /// The records in each topic that is still to be read.
    private var topics: [[RecordPosition]]
    private var reader: TopicReader?
    /// The last record in each partition that is being read.
    private var left: [Int32: Int64] = [:]
    /// Records that were read and belong to the next slice.
    private var records: ArraySlice<ConsumedRecord> = []

    fileprivate init(_ failures: [BatchFailure], _ topics: Topics, properties: [String: String], bytes: Int) {
        var indices: [RecordPosition: Int] = [:]
        for (index, failure) in failures.enumerated() {
            guard let position = RecordPosition(failure.record), topics.lanes.contains(position.topic) else { continue }
            indices[position] = index
        }
        self.failures = failures
        self.indices = indices
        self.properties = properties
        self.bytes = bytes
        self.topics = Array(Dictionary(grouping: indices.keys, by: \.topic).values)
    }

    /// Returns the next jobs; nil at the end.
    /// - Throws: ``KafkaError``, `CancellationError`.
    public func next() async throws -> [FailedJob]? {
        var (slice, size): ([FailedJob], Int) = ([], 0)
        while size < bytes {
            if let record = records.popFirst() {
                guard let job = job(in: record) else { continue }
                slice.append(job)
                size += record.bytes
            } else if !(try await read()) {
                break
            }
        }
        return slice.isEmpty ? nil : slice
    }

    /// Stops reading. A second call returns immediately.
    public func close() async {
        await reader?.close()
        reader = nil
    }

    private func job(in record: ConsumedRecord) -> FailedJob? {
        let position = RecordPosition(topic: record.topic, partition: record.partition, offset: record.offset)
        // The worker has decoded the message before.
        guard let index = indices[position], let message = record.value,
            var job = try? JobBuilder(json: message, maximumSize: message.count)
        else { return nil }
        job["batch"] = nil
        if job["id"] == nil { job.set("id", failures[index].job) }
        return FailedJob(index: index, failure: failures[index], job: job)
    }

    /// Reads the next records. Returns false at the end.
    private func read() async throws -> Bool {
        while left.isEmpty {
            await close()
            guard let positions = topics.popLast(), let topic = positions.first?.topic else { return false }
            try await open(topic, for: positions)
        }
        guard let batch = try await reader?.nextBatch() else { throw CancellationError() }
        records = batch.records[...]
        for record in batch.records {
            if let last = left[record.partition], record.offset >= last { left[record.partition] = nil }
        }
        for partition in batch.ends.keys { left[partition] = nil }
        return true
    }

    private func open(_ topic: String, for positions: [RecordPosition]) async throws(KafkaError) {
        let end = try await TopicReader.open(topic, from: .end, properties: properties)
        var starts = end.endOffsets
        await end.close()
        for position in positions {
            // The topic may have been created again with fewer partitions.
            guard let start = starts[position.partition] else { continue }
            starts[position.partition] = min(start, position.offset)
            left[position.partition] = max(left[position.partition] ?? 0, position.offset)
        }
        if left.isEmpty { return }
        reader = try await TopicReader.open(topic, from: .offsets(starts), properties: properties, tellsEnds: true)
    }
}

/// The position of a record: its topic, partition and offset, separated by hyphens.
private struct RecordPosition: Hashable {
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
}
