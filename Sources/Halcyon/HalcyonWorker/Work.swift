import CivilTime
import HalcyonCluster
import HalcyonModel
import Kafka

/// One job on its way down the line: what is known of it from the start. What the stages find out travels beside it.
struct Work: Sendable {
    /// What is to be done.
    let job: Job
    /// What the result of each variant is called. Equal variants have equal keys.
    let keys: [ResultKey]
    /// Where the job stands in its topic.
    let origin: RecordOrigin
    /// The trace that the job belongs to, if its producer named one.
    let traceparent: String?
    /// When the worker took it.
    let takenAt: ContinuousClock.Instant

    /// Where the variants stand that are still to be made: of equal ones the first.
    func missing(from found: [ResultKey: ReadyResult]) -> [Int] {
        var seen: Set<ResultKey> = []
        return keys.indices.filter { found[keys[$0]] == nil && seen.insert(keys[$0]).inserted }
    }

    /// When the result is no longer wanted, in seconds since 1970.
    private var deadline: Double? { job.deadline?.moment(submitted: origin.submitted) }

    /// Looks whether anybody still wants the result.
    /// - Throws: ``Failure`` `expired` once the deadline has passed.
    func checkDeadline() throws(Failure) {
        guard let deadline, Timestamp.now.seconds >= deadline else { return }
        throw expired
    }

    /// The deadline by the clock that time limits are kept with.
    var deadlineInstant: ContinuousClock.Instant? {
        deadline.map { .now + .seconds($0 - Timestamp.now.seconds) }
    }

    /// What a job ends with that is no longer wanted.
    var expired: Failure {
        Failure(.expired, "the deadline passed" + (deadline.map { " at \(Timestamp(seconds: $0).rfc3339)" } ?? ""))
    }
}

/// Where a message stands in its topic: what makes event ids the same when it is delivered again.
struct RecordOrigin: Sendable {
    /// Topic, partition and offset, as ids of jobs and events are made of them.
    let coordinates: String
    /// When it was written, in seconds since 1970.
    let submitted: Double

    init(_ record: ConsumedRecord) {
        coordinates = "\(record.topic)-\(record.partition)-\(record.offset)"
        submitted = record.timestamp < 0 ? Timestamp.now.seconds : Double(record.timestamp) / 1000
    }
}

/// Why a job went no further.
enum Stop: Error {
    /// It ends as failed.
    case failed(Failure)
    /// It is not done here: the worker is leaving, or the partition has gone to another.
    case handedBack
}
