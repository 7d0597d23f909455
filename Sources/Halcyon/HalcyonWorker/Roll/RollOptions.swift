/// How a worker says that it is there.
public struct RollOptions: Sendable {
    /// So often it signs the roll. It is off it when it has not four times.
    public var interval = Duration.seconds(3)
    /// Which Halcyon it says it is.
    public var version = ""

    /// The defaults.
    public init() {}
}
