/// What all requests of a client share.
public struct CurlSettings: Sendable {
    /// Sent as `User-Agent`, unless a request sets that header.
    public var userAgent: String?
    /// How many connections to one host may be open at once; 0 for any number. Further requests wait, within their time limit.
    public var maxConnectionsPerHost = 0
    /// How many connections are kept for later requests.
    public var idleConnections = 64
    /// A PEM file of certificate authorities to trust in place of the system's.
    public var authorities: String?
    /// Asked for each address before it is dialled, on the client's thread: keep it short. A connection that is used again was
    /// asked for when it was dialled.
    public var allowsAddress: @Sendable (SocketAddress) -> Bool = { _ in true }

    /// The defaults: every address is allowed.
    public init() {}
}
