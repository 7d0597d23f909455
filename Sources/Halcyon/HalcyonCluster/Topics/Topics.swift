import HalcyonModel

/// The topics of one Halcyon cluster: a prefix and fixed names (`kafka.prefix`, `halcyon.` unless set).
public struct Topics: Hashable, Sendable {
    /// What stands before each name.
    public let prefix: String

    /// Takes the prefix as it is.
    public init(prefix: String = "halcyon.") {
        self.prefix = prefix
    }

    /// Where producers put jobs.
    public func jobs(_ lane: Lane) -> String { prefix + lane.topic }
    /// Where events are published, keyed by job id.
    public var events: String { prefix + "events" }
    /// Messages that are no jobs, as they came, with the reason in their headers.
    public var dead: String { prefix + "dead" }

    /// All lanes, the most urgent first.
    public var lanes: [String] { Lane.allCases.map(jobs) }
    /// Every topic that must be there.
    public var all: [String] { lanes + [events, dead] }
}
