import CivilTime

/// Civil time for moments of the clock that spans are measured with. Read once for work that belongs together, so that its spans stand to
/// each other as they were measured, also when the clock of the machine is set meanwhile.
public struct TraceClock: Sendable {
    private let instant: ContinuousClock.Instant
    /// What time it was then, in nanoseconds since 1970.
    public let start: Int64

    /// Reads both clocks.
    public init() {
        instant = .now
        start = Timestamp.nanoseconds
    }

    /// In nanoseconds since 1970.
    public func nanoseconds(of moment: ContinuousClock.Instant) -> Int64 {
        let (seconds, attoseconds) = instant.duration(to: moment).components
        return start + seconds * 1_000_000_000 + attoseconds / 1_000_000_000
    }
}
