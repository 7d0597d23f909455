/// How a gateway looks at the whole cluster.
public struct OverviewOptions: Sendable {
    /// It looks no oftener than this, however many ask.
    public var interval = Duration.seconds(2)
    /// How long it waits for Kafka, for each thing that it asks; what is not known by then is left out.
    public var patience = Duration.seconds(2)

    /// The defaults.
    public init() {}
}
