/// How events and offsets are committed together.
public struct TransactionOptions: Sendable {
    /// For how long a job that has ended waits for others to be committed with it. While a transaction is under way they gather anyway.
    public var linger = Duration.milliseconds(10)
    /// Jobs of one transaction, at most.
    public var batch = 5000
    /// The worker's own name, under which no other runs: whoever takes it over ends the one before, and its open transaction at once. Nil for
    /// a random one, that no other has.
    public var instance: String?
    /// The defaults.
    public init() {}
}
