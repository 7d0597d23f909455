/// How long things take with leases.
public struct LeaseOptions: Hashable, Sendable {
    /// How long a lease lasts that is not renewed: so long nobody does the work of a worker that has died. It is renewed three
    /// times in this time.
    public var duration = Duration.seconds(10)
    /// Who waits asks again after this time at the latest, whether or not it was woken.
    public var recheck = Duration.seconds(1)
    /// For how long Redis may give no answer until work goes on without leases.
    public var patience = Duration.seconds(6)

    /// Deaths (``Lease/deaths``) after which a product is poison.
    public var deaths = DeathLimits()

    /// The defaults.
    public init() {}
}
