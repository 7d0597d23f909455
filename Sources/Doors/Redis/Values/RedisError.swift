/// Why a command has no reply, or what the server has against it.
public struct RedisError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kinds of failure.
    public enum Code: Hashable, Sendable {
        /// There is no connection; the command was never sent.
        case unavailable
        /// The connection went while the command was under way: the server may have run it or not.
        case connectionLost
        /// No reply in time: the server may have run the command, may yet run it, or not.
        case timeout
        /// The server answered with an error; its first word, such as `OOM`, `NOSCRIPT`, `READONLY`, `LOADING` or `ERR`.
        case server(String)
        /// What came is not the Redis protocol, or nests deeper than hiredis reads (7 levels in 0.14).
        case protocolError
        /// The task was cancelled: the server may have run the command or not.
        case cancelled
        /// The client is closed.
        case closed
        /// A command that a cluster cannot run as it is: its keys lie in several slots, or it does not say which node it means.
        case misuse
        /// The endpoint's text is wrong, or names something that this build cannot do.
        case badEndpoint
    }

    /// The kind of failure.
    public let code: Code
    /// What happened, for people. It never holds a password.
    public let message: String

    /// An error of this kind.
    public init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// An error reply: its first word is the code (Redis serialization protocol, "Simple errors").
    init(reply: String) {
        self.init(.server(String(reply.prefix { $0 != " " })), reply)
    }

    /// Whether the same command may succeed when sent again in a while. Whether sending it twice does harm is for the caller
    /// to know.
    public var isRetriable: Bool {
        switch code {
        case .unavailable, .connectionLost, .timeout: true
        case .server(let prefix): Self.passingStates.contains(prefix)
        case .protocolError, .cancelled, .closed, .misuse, .badEndpoint: false
        }
    }

    /// States of a server that end by themselves: loading, a running script, a failover, slots on their way.
    private static let passingStates: Set = [
        "LOADING", "BUSY", "TRYAGAIN", "CLUSTERDOWN", "MASTERDOWN", "READONLY", "MOVED", "ASK",
    ]

    /// The message.
    public var description: String { message }
}
