import HalcyonCluster
import HalcyonModel
import HalcyonWire
import Kafka

/// The first stage: from a message to a job that can be done.
struct Intake: Sendable {
    let reader: JobReader

    /// - Throws: ``JobRefusal``.
    func read(_ record: ConsumedRecord) throws(JobRefusal) -> (work: Work, unknownFields: [String]) {
        let takenAt = ContinuousClock.now
        let origin = RecordOrigin(record)
        let reading = try reader.read(record.value ?? [], defaultID: origin.coordinates)
        let job = reading.job
        let work = Work(
            job: job, keys: job.keys, origin: origin, traceparent: record.traceparent, takenAt: takenAt)
        return (work, reading.unknownFields)
    }
}

extension ConsumedRecord {
    /// The W3C trace context that the producer sent along.
    var traceparent: String? {
        headers.first { $0.name == "traceparent" }?.value.map { String(decoding: $0, as: UTF8.self) }
    }
}
