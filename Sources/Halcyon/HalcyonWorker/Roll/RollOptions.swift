/// How a worker says that it is there.
public struct RollOptions: Sendable {
    /// So often it signs the roll.
    public var interval = Duration.seconds(1)
    /// Which Halcyon it says it is.
    public var version = ""

    /// The defaults.
    public init() {}
}
