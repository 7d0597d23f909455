import HalcyonCluster
import HalcyonImaging
import HalcyonModel
import HalcyonSources
import HalcyonWire
import Kafka
import Telemetry

/// A record, decoded.
enum DecodedRecord: Sendable {
    case job(JobContext)
    /// It is no job that can be done.
    case refused(JobRefusal, JobTrace?)
}

/// Decodes a record to a job that can be done.
struct DecodeStage: Sendable {
    private let reader: JobReader
    /// By their topics.
    private let lanes: [String: Lane]
    /// The topics of retries, by their names.
    private let retries: [String: Int]

    init(reader: JobReader, topics: Topics) {
        self.reader = reader
        lanes = Dictionary(uniqueKeysWithValues: Lane.allCases.map { (topics.jobs($0), $0) })
        retries = Dictionary(uniqueKeysWithValues: topics.retries.enumerated().map { ($1, $0) })
    }

    /// - Parameter trace: the trace of the job, if it is recorded.
    /// - Throws: ``JobRefusal``.
    func decode(_ record: ConsumedRecord, _ trace: JobTrace? = nil) throws(JobRefusal) -> JobContext {
        let value = record.value ?? []
        let retry = try retry(record, value)
        let origin = retry?.message.provenance ?? Provenance(record)
        let reading = try reader.read(value, defaultID: origin.coordinates)
        let context = JobContext(
            job: reading.job, keys: reading.job.keys, lane: lanes[origin.topic] ?? .normal, origin: origin,
            traceparent: record.traceparent, patience: Patience(of: record), retry: retry,
            warnings: reading.warnings, unknownFields: reading.unknownFields, trace: trace)
        trace?.describe(context)
        return context
    }

    /// The lane that a message came from, for what is counted by lanes; the usual one where nothing says.
    func lane(of record: ConsumedRecord) -> Lane {
        if let lane = lanes[record.topic] { return lane }
        // It is counted with the others where its headers do not say.
        let retry = try? RetryMessage(record)
        return retry.flatMap { lanes[$0.provenance.topic] } ?? .normal
    }

    /// What a message in a topic of retries says; nil for one in a lane, whatever its headers are.
    private func retry(_ record: ConsumedRecord, _ value: [UInt8]) throws(JobRefusal) -> JobContext.Retry? {
        guard let topic = retries[record.topic] else { return nil }
        do throws(Failure) {
            let message = try RetryMessage(record)
            guard lanes[message.provenance.topic] != nil else {
                throw Failure(
                    .invalidJob, "the message is no retry: it comes from \(message.provenance.topic), which is no lane")
            }
            return JobContext.Retry(message: message, topic: topic)
        } catch {
            throw reader.refuse(value, for: error)
        }
    }
}

extension ConsumedRecord {
    /// The W3C trace context that the producer sent along, as far as this version of Halcyon knows it; nil for what is none, which no event
    /// carries on.
    var traceparent: String? {
        guard let bytes = headers.first(where: { $0.name == "traceparent" })?.value else { return nil }
        let text = String(decoding: bytes, as: UTF8.self)
        return TraceContext(traceparent: text).map { _ in String(decoding: bytes.prefix(55), as: UTF8.self) }
    }
}

extension JobReader {
    /// The same reader, which takes jobs that name these processors, sizers and providers of sources with parameters that they
    /// can follow.
    public func knowing(_ extensions: Extensions, _ providers: CustomProviders) -> JobReader {
        var reader = self
        reader.customProcessors = extensions.processorNames
        reader.customSizers = extensions.sizerNames
        reader.checkCustom = { variant throws(Failure) in try extensions.validate(variant) }
        reader.customSources = providers.names
        reader.customSourceKey = { name, reference throws(Failure) in try providers.cacheKey(name, for: reference) }
        return reader
    }
}
