import HalcyonModel

/// A job as a message, which has been read and checked by the very reader that workers have: for who submits jobs.
public struct PreparedJob: Sendable {
    /// The value of the record.
    public let message: [UInt8]
    /// What workers will read in it.
    public let job: Job
    /// One for each variant.
    public let keys: [ResultKey]
    /// Where it is to be put, by the field `priority`.
    public let lane: Lane
    /// Fields that mean nothing to this version.
    public let unknownFields: [String]
    /// The same as texts for people, few enough to be printed: what the event that the job is ready will say of them.
    public var warnings: [String] { JobReading.warnings(of: unknownFields) }

    /// - Parameter fallbackID: the id of a job that brings none.
    /// - Throws: ``JobRefusal``.
    public init(_ draft: JobDraft, fallbackID: String, by reader: JobReader) throws(JobRefusal) {
        message = draft.json
        let reading = try reader.read(message, defaultID: fallbackID)
        job = reading.job
        keys = reading.job.keys
        lane = reading.lane ?? .normal
        unknownFields = reading.unknownFields
    }
}
