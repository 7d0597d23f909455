import Threads

/// One node of a cluster: its address, and the connection to it, which is made when the node is.
final class ClusterNode {
    let address: RedisAddress
    private let session: Session<CommandQueue>

    init(_ address: RedisAddress, of cluster: Cluster, _ login: Login, _ settings: RedisSettings, on loop: EventLoop) {
        self.address = address
        session = Session(
            CommandQueue(settings, on: loop, under: NodeOverseer(address, cluster)),
            with: FixedGuide(Server(address: address, login: login)), settings, on: loop)
        session.connect()
    }

    /// The calls of this node.
    var queue: CommandQueue { session.talk }
    /// Whether it has a connection.
    var isOpen: Bool { session.isOpen }

    /// Ends the connection.
    func close() { session.close() }
}

/// Tells the cluster about one of its nodes.
private final class NodeOverseer: Overseer {
    private let address: RedisAddress
    private weak var cluster: Cluster?

    init(_ address: RedisAddress, _ cluster: Cluster) {
        self.address = address
        self.cluster = cluster
    }

    func opened() { cluster?.opened(address) }
    func lost(_ error: RedisError) { cluster?.lost(address, error) }

    func takesOver(_ call: Call, insteadOf outcome: Call.Outcome) -> Bool {
        let redirection: Redirection?
        switch outcome {
        case .failure(let error): redirection = Redirection(error, asked: address)
        case .success(.array(let replies)):
            guard case .pipeline = call.content else { return false }
            redirection = Redirection(transaction: replies, asked: address)
        case .success: return false
        }
        // Who names a node wants its own words.
        guard let redirection, call.node == nil, let cluster else { return false }
        return cluster.follows(redirection, with: call, insteadOf: outcome)
    }
}
