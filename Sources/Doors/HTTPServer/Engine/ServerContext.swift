import Threads

/// What all connections of a server share.
final class ServerContext: Sendable {
    let settings: HTTPServer.Settings
    let replier: HTTPServer.Replier
    let connections: Connections

    init(_ settings: HTTPServer.Settings, _ replier: @escaping HTTPServer.Replier) {
        self.settings = settings
        self.replier = replier
        connections = Connections(settings.limits)
    }

    /// The answer to what the door refuses. No task runs that could write a stream.
    func answer(to refusal: HTTPServer.Refusal) -> HTTPServer.Response {
        var response = settings.refusal(refusal)
        if case .stream = response.body { response.body = .none }
        return response
    }
}

/// The book of the connections that are open.
final class Connections: Sendable {
    private struct Book {
        var open: [ObjectIdentifier: Connection] = [:]
        var perAddress: [String: Int] = [:]
        /// There while the server stops: opened when no request is under way any more.
        var idle: Gate?
    }

    private let limits: HTTPServer.Limits
    private let book = Lock(Book())

    init(_ limits: HTTPServer.Limits) { self.limits = limits }

    /// All of them.
    var all: [Connection] { book.withLock { Array($0.open.values) } }
    /// How many there are.
    var count: Int { book.withLock { $0.open.count } }

    /// Enters a connection. Gives back why it is one too many, if it is.
    func add(_ connection: Connection) -> String? {
        book.withLock { book in
            let ofAddress = book.perAddress[connection.address, default: 0] + 1
            defer {
                // Entered all the same: it is open until libmicrohttpd has closed it.
                book.perAddress[connection.address] = ofAddress
                book.open[ObjectIdentifier(connection)] = connection
            }
            if book.idle != nil { return "the server stops" }
            if book.open.count >= limits.connections { return "there are \(limits.connections) connections" }
            if ofAddress > limits.connectionsPerAddress {
                return "it has \(limits.connectionsPerAddress) connections"
            }
            return nil
        }
    }

    /// Strikes a connection out.
    func remove(_ connection: Connection) {
        book.withLock { book in
            book.open[ObjectIdentifier(connection)] = nil
            let left = book.perAddress[connection.address, default: 1] - 1
            book.perAddress[connection.address] = left > 0 ? left : nil
        }
    }

    /// Takes no more from now on, and has each that is open closed behind its request.
    /// - Returns: what is opened when no request is under way any more.
    func stopTaking() -> Gate {
        let idle = Gate()
        book.withLock { $0.idle = idle }
        for connection in all { connection.closeAfterwards() }
        requestEnded()
        return idle
    }

    /// A request has ended that was the last one of its connection.
    func requestEnded() {
        guard let idle = book.withLock({ $0.idle }), !all.contains(where: \.isBusy) else { return }
        idle.open()
    }
}
