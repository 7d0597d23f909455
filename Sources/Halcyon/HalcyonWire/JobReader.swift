import HalcyonModel
import JSON

/// A job that was read, and what was noticed on the way.
public struct JobReading: Sendable {
    /// The job.
    public let job: Job
    /// Names of top-level fields that mean nothing to this version.
    public let unknownFields: [String]
}

/// A message that is no job that can be done.
public struct JobRefusal: Error, Sendable {
    /// `invalid_job` or `unsupported_source`, with the field's name.
    public let failure: Failure
    /// The job's id, when the message had a readable one: then an event can say what is wrong.
    public let id: String?
    /// What the job wanted given back, as far as it could be read.
    public let echo: Job.Echo
}

/// Reads the value of a job message: the JSON that `schemas/job.schema.json` describes.
public struct JobReader: Sendable {
    /// Bytes of the longest message taken.
    public var maximumBytes: Int
    /// Whether a field that means nothing here is an error.
    public var isStrict: Bool

    /// The defaults suit Kafka's own limit of 1 MiB a message.
    public init(maximumBytes: Int = 1 << 20, isStrict: Bool = false) {
        self.maximumBytes = maximumBytes
        self.isStrict = isStrict
    }

    /// - Parameter defaultID: the id of a job that brings none: its topic, partition and offset.
    /// - Throws: ``JobRefusal``.
    public func read(_ bytes: [UInt8], defaultID: String) throws(JobRefusal) -> JobReading {
        let root: JSONElement
        do {
            root = try JSON.parse(bytes, maximumSize: maximumBytes)
        } catch {
            throw JobRefusal(failure: Failure(.invalidJob, "the message: \(error)"), id: nil, echo: Job.Echo())
        }
        var fields = JobFields()
        do {
            try root.forEachMember { name, value throws(JSONError) in try fields.take(name, value) }
            if isStrict, let name = fields.unknown.first {
                throw JSONError(.unknown, "is no field of a job", path: name)
            }
            let job = try fields.job(defaultID: defaultID)
            return JobReading(job: job, unknownFields: fields.unknown)
        } catch {
            let failure = (error as? Failure) ?? Failure(.invalidJob, "\(error)")
            throw JobRefusal(failure: failure, id: fields.id ?? Self.id(of: root), echo: fields.echo)
        }
    }

    /// The id of a job whose reading ended before its id came.
    private static func id(of root: JSONElement) -> String? {
        guard let id = root.member("id") else { return nil }
        return try? JobFields.id(id)
    }
}
