import Concurrency
import HalcyonCluster
import HalcyonCoding
import HalcyonImaging
import HalcyonModel
import HalcyonSources
import Kafka
import Telemetry

/// The result of decoding a record.
enum DecodedRecord: Sendable {
    case job(JobContext)
    /// The record does not contain a valid job.
    case refused(InvalidJobError, JobTrace?)
}

/// Decodes records to jobs.
struct DecodeStage: Sendable {
    private let reader: JobDecoder
    private let tenants: TenantOptions
    /// The lanes by topic name.
    private let lanes: [String: Lane]
    /// The topics in which jobs wait, by name: the index of a retry topic, and the delay in seconds.
    private let delays: [String: (retry: Int?, seconds: Double)]

    init(reader: JobDecoder, topics: Topics, tenants: TenantOptions = TenantOptions()) {
        self.reader = reader
        self.tenants = tenants
        lanes = Dictionary(uniqueKeysWithValues: Lane.allCases.map { (topics.jobs($0), $0) })
        var delays: [String: (retry: Int?, seconds: Double)] = [:]
        for (index, delay) in topics.retryDelays.enumerated() {
            delays[topics.retry(delay)] = (index, delay / .seconds(1))
        }
        for delay in topics.startDelays { delays[topics.delay(delay)] = (nil, delay / .seconds(1)) }
        delays[topics.overflow] = (nil, 0)
        self.delays = delays
    }

    /// - Parameter trace: The trace of the job, if it is recorded.
    /// - Throws: ``InvalidJobError`` if the record does not contain a valid job.
    func decode(_ record: ConsumedRecord, _ trace: JobTrace? = nil) throws(InvalidJobError) -> JobContext {
        try context(record, trace) { value, id throws(InvalidJobError) in try reader.read(value, defaultID: id) }
    }

    /// Decodes only the fields that identify a job, if its preset is not available.
    /// - Throws: ``InvalidJobError`` if these fields are invalid.
    func decodeIdentity(_ record: ConsumedRecord, _ trace: JobTrace?) throws(InvalidJobError) -> JobContext {
        try context(record, trace) { value, id throws(InvalidJobError) in
            try reader.readIdentity(value, defaultID: id)
        }
    }

    private func context(
        _ record: ConsumedRecord, _ trace: JobTrace?,
        _ read: ([UInt8], _ defaultID: String) throws(InvalidJobError) -> DecodedJob
    ) throws(InvalidJobError) -> JobContext {
        let value = record.value ?? []
        let retry = try retry(record, value)
        let origin = retry?.message.provenance ?? OriginalRecord(record)
        let reading = try read(value, origin.coordinates)
        let refreshID = record.refreshID
        let job = refreshID.map { reading.job.refreshing(as: "refresh-\($0)") } ?? reading.job
        let context = JobContext(
            job: job, keys: job.keys, lane: lanes[origin.topic] ?? .normal,
            flow: tenants.flow(of: job.tenant), origin: origin, owner: record.owner, traceparent: record.traceparent,
            waitTimeout: WaitTimeout(of: record), retry: retry, refreshID: refreshID,
            warnings: reading.warnings, unknownFields: reading.unknownFields, trace: trace)
        trace?.describe(context)
        return context
    }

    /// Returns the flow of a record without decoding its job.
    func flow(of record: ConsumedRecord) -> Flow { tenants.flow(of: record.value.flatMap(reader.tenant)) }

    /// Returns the rule for records whose lane or tenant is paused; nil if nothing is paused.
    func rule(for pauses: Pauses) -> HoldRule? {
        let (paused, tenants) = (pauses.lanes, pauses.tenants)
        if paused.isEmpty, tenants.isEmpty { return nil }
        let topics = Set(lanes.filter { paused.contains($0.value) }.keys)
        return HoldRule(topics: topics) { [self] delivery in
            delivery.flow.name.map(tenants.contains) ?? false
                || !paused.isEmpty && paused.contains(lane(of: delivery.record))
        }
    }

    /// Returns the lane of a message, for metrics and pauses. It is `normal` if the message does not name one.
    func lane(of record: ConsumedRecord) -> Lane {
        if let lane = lanes[record.topic] { return lane }
        // A retry without valid headers is counted as `normal`.
        let retry = try? RetryMessage(record)
        return retry.flatMap { lanes[$0.provenance.topic] } ?? .normal
    }

    /// Decodes the retry headers of a message. Returns nil for a message in a lane, regardless of its headers.
    private func retry(_ record: ConsumedRecord, _ value: [UInt8]) throws(InvalidJobError) -> JobContext.Retry? {
        guard let topic = delays[record.topic] else { return nil }
        do throws(JobError) {
            let message = try RetryMessage(record)
            guard lanes[message.provenance.topic] != nil else {
                throw JobError(
                    .invalidJob, "invalid retry message: its original topic \(message.provenance.topic) is not a lane")
            }
            return JobContext.Retry(
                coordinates: OriginalRecord(record).coordinates, message: message, topic: topic.retry,
                delay: topic.seconds)
        } catch {
            throw reader.refuse(value, for: error)
        }
    }
}

extension ConsumedRecord {
    /// The id of the results that the job of the message refreshes; nil for a job of a producer.
    var refreshID: String? {
        if headers.isEmpty { return nil }
        guard let id = headers.first(where: { $0.name == RefreshHeader.name })?.value else { return nil }
        return String(decoding: id.prefix(32), as: UTF8.self)
    }

    /// The name of the API key with which a gateway submitted the job; nil for other producers.
    var owner: String? {
        headers.first { $0.name == OwnerHeader.name }?.value.map { String(decoding: $0, as: UTF8.self) }
    }

    /// The W3C trace context that the producer sent, limited to the length of the supported version. Nil if it is
    /// missing or invalid. Events do not carry an invalid one.
    var traceparent: String? {
        guard let bytes = headers.first(where: { $0.name == "traceparent" })?.value else { return nil }
        let text = String(decoding: bytes, as: UTF8.self)
        return TraceContext(traceparent: text).map { _ in String(decoding: bytes.prefix(55), as: UTF8.self) }
    }
}

extension JobDecoder {
    /// Returns a decoder that also accepts these processors, sizers and source providers, and validates their
    /// parameters.
    public func withExtensions(_ extensions: Extensions, _ providers: CustomProviders) -> JobDecoder {
        var reader = self
        reader.customProcessors = extensions.processorNames
        reader.customSizers = extensions.sizerNames
        reader.checkCustom = { variant throws(JobError) in try extensions.validate(variant) }
        reader.customSources = providers.names
        reader.customSourceKey = { name, reference throws(JobError) in try providers.cacheKey(name, for: reference) }
        return reader
    }
}
