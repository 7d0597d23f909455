import Concurrency

/// The state shared by all connections of a server.
final class ServerContext: Sendable {
    let settings: HTTPServer.Settings
    let replier: HTTPServer.RequestHandler
    let connections: Connections

    init(_ settings: HTTPServer.Settings, _ replier: @escaping HTTPServer.RequestHandler) {
        self.settings = settings
        self.replier = replier
        connections = Connections(settings.limits)
    }

    /// The response to a rejected request. A stream is dropped because no task runs that could write it.
    func answer(to refusal: HTTPServer.HTTPRequestError) -> HTTPServer.Response {
        var response = settings.refusal(refusal)
        if case .stream = response.body { response.body = .none }
        return response
    }
}

/// The table of open connections.
final class Connections: Sendable {
    private struct ConnectionTable {
        var open: [ObjectIdentifier: Connection] = [:]
        var perAddress: [String: Int] = [:]
        /// Set while the server stops, and signaled when no request is in flight.
        var idle: AsyncEvent?
    }

    private let limits: HTTPServer.Limits
    private let table = Lock(ConnectionTable())

    init(_ limits: HTTPServer.Limits) { self.limits = limits }

    /// All open connections.
    var all: [Connection] { table.withLock { Array($0.open.values) } }
    /// The number of open connections.
    var count: Int { table.withLock { $0.open.count } }

    /// Registers a connection.
    /// - Returns: The event to report if the connection is to be closed, because it exceeds a limit or the server is
    ///   stopping.
    func add(_ connection: Connection) -> HTTPServer.ServerEvent? {
        table.withLock { table -> HTTPServer.ServerEvent? in
            let ofAddress = table.perAddress[connection.address, default: 0] + 1
            defer {
                // Rejected connections are registered too: they are open until libmicrohttpd has closed them.
                table.perAddress[connection.address] = ofAddress
                table.open[ObjectIdentifier(connection)] = connection
            }
            let address = connection.address
            if table.idle != nil { return .dropped(reason: "the server is stopping", remoteAddress: address) }
            if table.open.count >= limits.connections {
                let reason = "connection limit of \(limits.connections) reached"
                return .connectionLimit(reason: reason, remoteAddress: address)
            }
            if limits.connectionsPerAddress > 0, ofAddress > limits.connectionsPerAddress {
                let reason = "connection limit of \(limits.connectionsPerAddress) per address reached"
                return .connectionLimit(reason: reason, remoteAddress: address)
            }
            return nil
        }
    }

    /// Removes a connection.
    func remove(_ connection: Connection) {
        table.withLock { table in
            table.open[ObjectIdentifier(connection)] = nil
            let left = table.perAddress[connection.address, default: 1] - 1
            table.perAddress[connection.address] = left > 0 ? left : nil
        }
    }

    /// Rejects new connections from now on, and closes every open one after its request.
    /// - Returns: An event that is signaled when no request is in flight.
    func stopTaking() -> AsyncEvent {
        let idle = AsyncEvent()
        table.withLock { $0.idle = idle }
        for connection in all { connection.closeAfterwards() }
        requestEnded()
        return idle
    }

    /// Handles the end of the last request of a connection.
    func requestEnded() {
        guard let idle = table.withLock({ $0.idle }), !all.contains(where: \.isBusy) else { return }
        idle.signal()
    }
}
