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

/// How far a call of a cluster has come beyond its first node, and whether it may go on.
struct Detour: Hashable {
    /// More redirections than that are a cluster at odds with itself: each is one of a slot on its way, or of an old map.
    private static let mostHops = 16

    private var hops = 0
    private var end: ContinuousClock.Instant?

    /// Whether the call may go to another node. True counts.
    mutating func mayHop() -> Bool {
        guard hops < Self.mostHops else { return false }
        hops += 1
        return true
    }

    /// Whether the call may be tried again in a while: for as long as calls wait for a connection, from the first time on.
    mutating func mayRest(_ now: ContinuousClock.Instant, patience: Duration) -> Bool {
        let end = end ?? now + patience
        self.end = end
        return now < end
    }
}

/// Leads to any node of a cluster, another one each time: what is published reaches them all.
final class AnyNodeGuide: Guide {
    private let login: Login
    private let seeds: [RedisAddress]
    /// What the last node knew of the others.
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
