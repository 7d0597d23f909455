/// How a gateway follows events and hands them on.
public struct EventOptions: Sendable {
    /// Bytes of the newest events that are kept in memory: who comes back within what they reach costs Kafka nothing, and who falls behind
    /// them is dropped.
    public var ringBytes = 16 << 20
    /// How far back a gateway reads when it starts, so that clients of one that has gone find in memory what they have missed.
    public var memory: Duration = .seconds(60)
    /// How often is looked whether the topic has more partitions than before.
    public var partitionInterval: Duration = .seconds(10)
    /// Streams at once.
    public var streams = 4096
    /// Streams at once that are read what they have missed from Kafka; others wait for their turn.
    public var replays = 4
    /// After how long without an event a stream is sent a sign of life, so that proxies keep it.
    public var keepAlive: Duration = .seconds(15)
    /// How long a client may leave what was sent to it unread; it is dropped then.
    public var patience: Duration = .seconds(20)
    /// After how long a client whose stream has ended is to come back.
    public var retry: Duration = .seconds(2)

    /// The defaults.
    public init() {}
}
