/// The standing of a result that was written to the store: what the result cache in Redis knows of it.
public enum ResultStanding: Sendable {
    /// It is the newest result of its key, as far as Redis knows.
    case current
    /// It has been purged.
    case purged
    /// Redis has a newer result of the same key.
    case replaced(by: StoredResult)
}
