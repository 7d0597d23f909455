import HalcyonCluster
import HalcyonImaging
import HalcyonModel
import HalcyonWire
import Kafka

/// The first stage: from a message to a job that can be done.
struct Intake: Sendable {
    let reader: JobReader
    let extensions: Extensions

    /// - Parameter extensions: whose names the reader is told here.
    init(reader: JobReader, extensions: Extensions) {
        var reader = reader
        reader.customProcessors = extensions.processorNames
        reader.customSizers = extensions.sizerNames
        self.reader = reader
        self.extensions = extensions
    }

    /// - Throws: ``JobRefusal``.
    func read(_ record: ConsumedRecord) throws(JobRefusal) -> (work: Work, unknownFields: [String]) {
        let takenAt = ContinuousClock.now
        let origin = RecordOrigin(record)
        let reading = try reader.read(record.value ?? [], defaultID: origin.coordinates)
        let job = reading.job
        for (index, variant) in job.variants.enumerated() {
            do {
                try extensions.validate(variant)
            } catch {
                let place = job.variants.count > 1 ? "variants[\(index)]: " : ""
                throw JobRefusal(Failure(error.code, place + error.message, isRetryable: error.isRetryable), of: job)
            }
        }
        let work = Work(
            job: job, keys: job.variants.map { ResultKey(source: job.source, variant: $0) }, origin: origin,
            traceparent: record.traceparent, takenAt: takenAt)
        return (work, reading.unknownFields)
    }
}

extension ConsumedRecord {
    /// The W3C trace context that the producer sent along.
    var traceparent: String? {
        headers.first { $0.name == "traceparent" }?.value.map { String(decoding: $0, as: UTF8.self) }
    }
}
