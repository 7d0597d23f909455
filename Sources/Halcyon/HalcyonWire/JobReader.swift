import HalcyonModel
import JSON

/// A job that was read, and what was noticed on the way.
public struct JobReading: Sendable {
    /// The job.
    public let job: Job
    /// Names of top-level fields that mean nothing to this version.
    public let unknownFields: [String]
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
            throw JobRefusal(Failure(error))
        }
        var fields = JobFields()
        do throws(JSONError) {
            try root.forEachMember { name, value throws(JSONError) in try fields.take(name, value) }
            if isStrict, let name = fields.unknown.first {
                throw JSONError(.unknown, "is no field of a job", path: name)
            }
        } catch {
            throw JobRefusal(Failure(error), of: root)
        }
        do {
            return JobReading(job: try fields.job(defaultID: defaultID), unknownFields: fields.unknown)
        } catch {
            throw JobRefusal(error, of: root)
        }
    }
}
