/// What a client waits for, and how much it takes.
public struct ClientOptions: Sendable {
    /// For so long a request is tried again while the gateway is away, stops, or says that it is too much (429). Default: 30 s. With
    /// `.zero` the first answer counts. Event streams come back for as long as they are read.
    public var patience = Duration.seconds(30)
    /// How long to wait for the end of a job; after that it is cancelled. Default: 5 min.
    public var jobTime = Duration.seconds(300)
    /// How long one request waits for the end of a job, before it is asked anew. A gateway may answer earlier. Default: 25 s.
    public var poll = Duration.seconds(25)
    /// Without a byte for so long, where one was due, a connection counts as dead. More than the gateway's `gateway.keepAlive`. Default: 60 s.
    public var silence = Duration.seconds(60)
    /// The longest pause before something is tried again, and up to half as much again by chance, unless the gateway asks for a longer one.
    /// Default: 30 s.
    public var longestPause = Duration.seconds(30)
    /// Jobs that are waited for at once; more of them take turns. Default: 64.
    public var maximumWaits = 64
    /// The largest image that is taken, in bytes. Default: 64 MiB.
    public var maximumImageBytes = 64 << 20
    /// The largest event of a stream that is taken, in bytes. As much again may wait to be read. Default: 4 MiB.
    public var maximumEventBytes = 4 << 20
    /// The largest other answer that is taken, in bytes. Default: 16 MiB.
    public var maximumAnswerBytes = 16 << 20

    /// The defaults.
    public init() {}
}
