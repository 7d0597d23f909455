import CivilTime

/// What a server answered that was asked for the time.
struct ClockReading: Hashable, Sendable {
    /// The server's clock.
    let server: Timestamp
    /// The system's clock when the answer came.
    let system: Timestamp
    /// How long asking took: somewhere in this time the server looked at its clock.
    let roundTrip: Duration

    /// Clocks that are no further apart are left alone: nothing in a cluster needs them nearer, and most differences of this size are the
    /// way's and not the clocks'.
    static let tolerance = Duration.seconds(1)

    /// Milliseconds by which the system's clock is behind the server's; 0 within the tolerance. Nil when asking took longer than that: such an
    /// answer says too little.
    var correction: Int64? {
        guard roundTrip <= Self.tolerance else { return nil }
        let behind = server.milliseconds - system.milliseconds + Int64(roundTrip / .milliseconds(2))
        return behind.magnitude <= UInt64(Self.tolerance / .milliseconds(1)) ? 0 : behind
    }
}
