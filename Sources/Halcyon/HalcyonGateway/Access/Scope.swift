/// What the bearer of a key may do.
public enum Scope: String, CaseIterable, Hashable, Sendable {
    /// Give jobs, cancel one's own, have images rendered.
    case submit
    /// Read images, events and the state of jobs.
    case read
    /// Purge, replay dead letters, and see what concerns everybody; and all that the others may.
    case admin
}
