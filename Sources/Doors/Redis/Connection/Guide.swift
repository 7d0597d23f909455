/// Tells a session which servers to try, and judges whom it has found. It belongs to the session's loop.
protocol Guide: AnyObject {
    /// Calls `done` with the servers to try now, in this order: at once or later, and not after the next call of this.
    func findServers(_ done: @escaping (Result<[Server], RedisError>) -> Void)
    /// What a fresh connection is asked behind the login; nil for nothing.
    var question: [RedisArgument]? { get }
    /// - Throws: when a server that answers ``question`` so is not the right one.
    func judge(_ answer: RedisValue, of server: Server) throws(RedisError)
    /// Whom to call when the right server is another one all of a sudden.
    func whenMoved(_ call: @escaping (RedisAddress) -> Void)
    /// The session is over.
    func close()
}

extension Guide {
    func whenMoved(_ call: @escaping (RedisAddress) -> Void) {}
    func close() {}
}

/// Knows one server, which is always the right one.
final class FixedGuide: Guide {
    private let server: Server

    init(_ server: Server) { self.server = server }

    func findServers(_ done: @escaping (Result<[Server], RedisError>) -> Void) { done(.success([server])) }
    var question: [RedisArgument]? { nil }
    func judge(_ answer: RedisValue, of server: Server) {}
}
