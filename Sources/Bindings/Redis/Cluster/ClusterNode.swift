import Concurrency

/// A node of a cluster: its address, and a connection that is started with the node.
final class ClusterNode {
    let address: RedisAddress
    private let session: ReconnectingConnection<CommandQueue>

    init(_ address: RedisAddress, of cluster: Cluster, _ login: Login, _ settings: RedisSettings, on loop: EventLoop) {
        self.address = address
        session = ReconnectingConnection(
            CommandQueue(settings, on: loop, under: ClusterNodeDelegate(address, cluster)),
            with: StaticEndpointResolver(Server(address: address, login: login)), settings, on: loop)
        session.connect()
    }

    /// The commands of this node.
    var queue: CommandQueue { session.talk }
    /// True if the node has a connection.
    var isOpen: Bool { session.isOpen }

    /// Closes the connection.
    func close() { session.close() }
}

/// Forwards the events of one node to the cluster.
private final class ClusterNodeDelegate: CommandQueueDelegate {
    private let address: RedisAddress
    private weak var cluster: Cluster?

    init(_ address: RedisAddress, _ cluster: Cluster) {
        self.address = address
        self.cluster = cluster
    }

    func opened() { cluster?.opened(address) }
    func lost(_ error: RedisError) { cluster?.lost(address, error) }

    func adopts(_ call: PendingCommand, insteadOf outcome: PendingCommand.Outcome) -> Bool {
        let redirection: Redirection?
        switch outcome {
        case .failure(let error): redirection = Redirection(error, asked: address)
        case .success(.array(let replies)):
            guard case .pipeline = call.content else { return false }
            redirection = Redirection(transaction: replies, asked: address)
        case .success: return false
        }
        // A command that names a node gets that node's reply unchanged.
        guard let redirection, call.node == nil, let cluster else { return false }
        return cluster.follows(redirection, with: call, insteadOf: outcome)
    }
}

/// The number of redirections and the retry time that a command has left in a cluster.
struct RedirectionBudget: Hashable {
    /// The maximum number of redirections. Each one belongs to a migrating slot or an outdated map. More of them mean
    /// that the cluster is inconsistent.
    private static let mostHops = 16

    private var hops = 0
    private var end: ContinuousClock.Instant?

    /// Returns true if the command may be redirected, and counts the redirection.
    mutating func mayHop() -> Bool {
        guard hops < Self.mostHops else { return false }
        hops += 1
        return true
    }

    /// Returns true if the command may be retried later. The limit is `timeout`, counted from the first retry.
    mutating func mayPostpone(_ now: ContinuousClock.Instant, timeout: Duration) -> Bool {
        let end = end ?? now + timeout
        self.end = end
        return now < end
    }
}

/// Resolves to any node of a cluster, in a new random order each time. Messages published to one node reach all of
/// them.
final class ClusterEndpointResolver: EndpointResolver {
    private let login: Login
    private let seeds: [RedisAddress]
    /// The nodes that the last node listed.
    private var known: Set<RedisAddress> = []

    init(_ seeds: [RedisAddress], _ login: Login) {
        self.seeds = seeds
        self.login = login
    }

    func findServers(_ done: @escaping (Result<[Server], RedisError>) -> Void) {
        let others = known.subtracting(seeds)
        done(.success((seeds.shuffled() + others.shuffled()).map { Server(address: $0, login: login) }))
    }

    var question: [RedisArgument]? { ["CLUSTER", "SLOTS"] }

    func judge(_ answer: RedisValue, of server: Server) throws(RedisError) {
        let map = try SlotMap(answer, asked: server.address)
        known = map.replicas.union(map.masters)
    }
}
