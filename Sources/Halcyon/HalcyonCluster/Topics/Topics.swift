import HalcyonModel

/// The topics of one Halcyon cluster: a prefix and fixed names (`kafka.prefix`, `halcyon.` unless set), and one for each length of
/// waiting (`retry.delays`, `webhooks.delays`).
public struct Topics: Hashable, Sendable {
    /// What stands before each name.
    public var prefix: String
    /// How long jobs wait at most that go through each of the topics of retries, rising.
    public var retryDelays: [Duration]

    /// How long webhooks wait at most that go through each of their own topics, rising.
    public var webhookDelays: [Duration]

    /// Takes the values as they are.
    public init(
        prefix: String = "halcyon.", retryDelays: [Duration] = [.seconds(10), .seconds(60), .seconds(600)],
        webhookDelays: [Duration] = [.seconds(10), .seconds(60), .seconds(600), .seconds(3600)]
    ) {
        self.prefix = prefix
        self.retryDelays = retryDelays
        self.webhookDelays = webhookDelays
    }

    /// Where producers put jobs.
    public func jobs(_ lane: Lane) -> String { prefix + lane.topic }
    /// Where jobs wait so long at most to be tried again: `retry.10s`, `retry.1m`.
    public func retry(_ delay: Duration) -> String { "\(prefix)retry.\(Self.name(of: delay))" }
    /// Where webhooks wait so long at most to be sent again: `webhooks.10s`.
    public func webhooks(_ delay: Duration) -> String { "\(prefix)webhooks.\(Self.name(of: delay))" }
    /// Where events are published, keyed by job id.
    public var events: String { prefix + "events" }
    /// What could not be done, as it came, with the reason in headers.
    public var dead: String { prefix + "dead" }
    /// What all workers are told at once.
    public var control: String { prefix + "control" }

    /// All lanes, the most urgent first.
    public var lanes: [String] { Lane.allCases.map(jobs) }
    /// All topics of retries, the shortest first.
    public var retries: [String] { retryDelays.map(retry) }
    /// All topics of webhooks that are to be sent again, the shortest first.
    public var webhookRetries: [String] { webhookDelays.map(webhooks) }
    /// Where workers take jobs from.
    public var taken: [String] { lanes + retries }
    /// Every topic that must be there.
    public var all: [String] { taken + [events] + webhookRetries + [dead, control] }

    /// In the largest unit that is whole: `10m`, `90s`, `250ms`.
    private static func name(of delay: Duration) -> String {
        let milliseconds = Int64((delay / .milliseconds(1)).rounded())
        if milliseconds % 60_000 == 0 { return "\(milliseconds / 60_000)m" }
        return milliseconds % 1000 == 0 ? "\(milliseconds / 1000)s" : "\(milliseconds)ms"
    }
}
