/// How dead letters are listed and replayed over HTTP.
public struct DeadOptions: Sendable {
    /// Letters of one request at most: those of a page, and those that are replayed at once.
    public var most = 1000
    /// Bytes of a page of letters: it ends with the one that makes it longer.
    public var pageBytes = 4 << 20
    /// How long the topic is read for one request, waiting for others included. What was found by then is answered.
    public var time = Duration.seconds(20)

    /// The defaults.
    public init() {}
}
