/// What all workers are told at once.
public enum ControlMessage: Hashable, Sendable {
    /// Nobody wants the jobs of this id any more.
    case cancel(String)
    /// This has been forgotten where all workers share it: what each keeps for itself is to follow.
    case purge(Purge)
}
