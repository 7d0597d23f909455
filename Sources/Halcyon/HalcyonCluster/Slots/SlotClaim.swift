import HalcyonModel

/// A job's claim to a slot.
public struct SlotClaim: Hashable, Sendable {
    /// Where the slot's generation lies in Redis.
    public let key: String
    /// The job's.
    public let generation: Int64

    /// - Parameter generation: the job's, 0 to 2^53.
    public init(_ name: String, generation: Int64, of tenant: String?) {
        key = "\(Self.prefix)\(tenant ?? "")/\(name)}"
        self.generation = generation
    }

    /// Of a job that was written at `submitted`, in seconds since 1970; nil when it has no slot.
    public init?(_ job: Job, submitted: Double) {
        guard let slot = job.slot else { return nil }
        self.init(slot.name, generation: slot.generation(submitted: submitted), of: job.tenant)
    }

    static let prefix = "halcyon:slot:{"
}
