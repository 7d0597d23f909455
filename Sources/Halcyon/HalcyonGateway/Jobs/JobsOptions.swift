/// How jobs are taken over HTTP.
public struct JobsOptions: Sendable {
    /// Jobs of one request, one a line. More are answered with 413; those before are taken.
    public var linesAtOnce = 100_000
    /// How long the brokers may take to have a job. It is given up then, and never sent, so it must be shorter by more than
    /// ``JobDesk/margin`` than the server's limit of a request.
    public var sendTime = Duration.seconds(20)
    /// The longest that `wait` may ask for.
    public var longestWait = Duration.seconds(30)
    /// Seconds after its last event that a job is remembered.
    public var memory = 3600.0

    /// The defaults.
    public init() {}
}
